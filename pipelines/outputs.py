"""A results directory as a job finds or makes it, and as it leaves it: specs, and windows that it did not finish."""

import csv
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import yaml
from apache_beam.io.filesystems import FileSystems

from pipelines.results import Fired, ResultsError, newest, read_counts, read_estimates
from schemas.collection import CollectionSpec
from schemas.flags import Flag
from schemas.records import Floats, PaneKind, SupportCounts
from transforms.remote import fetched, is_remote, matching
from transforms.sinks import counts_file, estimate_file, write_file


def prepare_results(out: Path, specs: Sequence[CollectionSpec]) -> None:
    """Make the directory and put the specs into it, with the files that they name, so that results can be read later.

    Raises:
        ResultsError: if results of a spec with the same version but another channel are there: their counts do not
            mix. Nothing is written then.
    """
    _refuse_other_channels(str(out), out, specs)
    for spec in specs:
        _keep(_folder(out, spec), spec)


def begin_results(out: str, specs: Sequence[CollectionSpec]) -> str:
    """Do as ``prepare_results`` for a path here or a URL.

    Returns:
        Where workers find it: the URL, or an absolute path.

    Raises:
        ResultsError: as ``prepare_results``.
        RemoteError: if the URL's file system does not answer well.
    """
    if is_remote(out):
        send_specs(out, specs)
        return out
    prepare_results(Path(out), specs)
    return str(Path(out).absolute())


def send_specs(out: str, specs: Sequence[CollectionSpec]) -> None:
    """Do as ``prepare_results`` on any of Beam's file systems.

    Raises:
        ResultsError, RemoteError: as ``begin_results``.
    """
    with tempfile.TemporaryDirectory() as there, tempfile.TemporaryDirectory() as made:
        for spec in specs:
            folder = _folder(Path(there), spec)
            folder.mkdir(parents=True)
            for url in matching(FileSystems.join(out, *folder.relative_to(there).parts, "*")):
                with fetched(url) as file:
                    (folder / url.rpartition("/")[2]).write_bytes(file.read())
        _refuse_other_channels(out, Path(there), specs)
        prepare_results(Path(made), specs)
        for path in sorted(path for path in Path(made).rglob("*") if path.is_file()):
            write_file(FileSystems.join(out, *path.relative_to(made).parts), path.read_bytes())


def _refuse_other_channels(out: str, folder: Path, specs: Sequence[CollectionSpec]) -> None:
    for spec in specs:
        kept = _folder(folder, spec) / "spec.yaml"
        if kept.exists() and not same_channel(CollectionSpec.load(kept), spec):
            raise ResultsError(
                f"{out}: has results of {spec.collection} version {spec.version} under another domain, mechanism, "
                "sensitive values or tags; raise the spec's version, or choose another --to"
            )


def mark_open_windows(out: Path) -> int:
    """Flag the newest pane of each window that has not fired on time as incomplete: its job has ended.

    Returns:
        How many windows these are.
    """
    windows = {pane.key: pane for pane in _newest(read_counts, out) if pane.pane.kind is PaneKind.EARLY}
    for pane in windows.values():
        _write(out, *counts_file(_incomplete(pane)))
    for estimate in _newest(read_estimates, out):
        if estimate.support.key in windows:
            _write(out, *estimate_file(replace(estimate, support=_incomplete(estimate.support))))
    return len(windows)


def _newest(read: Callable[[Path], list[Fired]], out: Path) -> list[Fired]:
    try:
        return newest(read(out))
    except ResultsError:  # none has fired yet
        return []


def _incomplete(pane: SupportCounts) -> SupportCounts:
    return replace(pane, flags=tuple(sorted({*pane.flags, str(Flag.INCOMPLETE)})))


def _write(out: Path, name: str, content: bytes) -> None:
    write_file(str(out / name), content)


def same_channel(one: CollectionSpec, other: CollectionSpec) -> bool:
    """Say whether the counts of two specs mean the same: p and q over the same symbols."""
    return (
        one.mechanism == other.mechanism
        and one.labels == other.labels
        and bool((one.sensitive_mask == other.sensitive_mask).all())
        and [tag.name for tag in one.tags] == [tag.name for tag in other.tags]
    )


def _folder(out: Path, spec: CollectionSpec) -> Path:
    return out / "specs" / f"{spec.collection}-v{spec.version}"


def _keep(folder: Path, spec: CollectionSpec) -> None:
    """Write a spec that stands alone: its labels and backgrounds beside it, under names of our own."""
    folder.mkdir(parents=True, exist_ok=True)
    data = spec.model_dump(mode="json", exclude_none=True)
    if spec.domain.labels_file is not None:
        data["domain"] = {"labels": spec.labels}
    for tag, weights in zip(data["tags"], spec.background, strict=True):
        if "background" in tag:
            tag["background"] = f"{tag['name']}.csv"
            _write_background(folder / tag["background"], spec.labels, weights)
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    (folder / "spec.yaml").write_text(text, encoding="utf-8")


def _write_background(path: Path, labels: Sequence[str], weights: Floats) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["value", "weight"])
        rows.writerows((label, repr(float(weight))) for label, weight in zip(labels, weights, strict=True) if weight)
