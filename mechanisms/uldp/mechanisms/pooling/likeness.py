"""Whether two versions of a collection estimate the same quantities, so that their estimates can be pooled."""

from uldp.schemas.specs.collection import CollectionSpec


def difference(spec: CollectionSpec, newest: CollectionSpec) -> str | None:
    """Return why two versions do not estimate the same quantities; None if they do.

    Epsilon, mechanism, sensitive values, background and limits may differ.
    """
    if set(spec.variables) != set(newest.variables):
        return "their records have other attributes"
    for name, variable in spec.variables.items():
        other, of = newest.variables[name], f" of {name}" if name else ""
        if not variable.kind.same(other.kind):
            kind = other.kind if variable.kind.listed else variable.kind
            return f"their {kind.compared}{of} differ"
        if [tag.name for tag in variable.tags] != [tag.name for tag in other.tags]:
            return f"their tags{of} differ"
    return None
