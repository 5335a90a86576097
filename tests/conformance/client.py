"""A client without NumPy or this project's code, after docs/client, that draws what a file of vectors says."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import ceil, exp, floor, prod
from typing import Any, cast

from tests.conformance.functions import symbol_of
from tests.conformance.kept import Device
from tests.conformance.responses import RESPONSES, symbols, width
from tests.conformance.variable import FLOATS, Draws, Variable

#: The mechanisms of this client.
NAMES = {*RESPONSES, "sample-one", "levels", "hybrid", "prefixes", "tree", "pairs", "marginals"}


def payload(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """What a device sends, after the order of draws in docs/client."""
    if "by" in case["spec"]:
        return _in_slice(case, user, draws)
    spec, known = case["spec"], case["probabilities"]
    own = {key: spec[key] for key in ("sensitive", "tags") if key in spec}
    if spec["mechanism"]["name"] == "sample-one":
        return _record(case, user, draws)
    if spec["mechanism"]["name"] == "levels":
        levels = spec["mechanism"]["levels"]
        parts = [
            Variable(spec["domain"] | own, spec["mechanism"]["of"] | {"epsilon": level["epsilon"]}, part)
            for level, part in zip(levels.values(), known["parts"], strict=True)
        ]
        z = parts[0].encode(user["value"], user["tag"], draws)
        return _wrapped(parts, [*levels].index(user["level"]), z, draws)
    if spec["mechanism"]["name"] == "hybrid":
        return _arm(case, user, draws)
    if spec["mechanism"]["name"] == "tree":
        return _block_of_a_level(case, user, draws)
    if spec["mechanism"]["name"] == "pairs":
        return _pair(spec, user["value"], draws)
    if spec["mechanism"]["name"] == "prefixes":
        return _prefix(case, user, draws)
    if spec["mechanism"]["name"] == "marginals":
        return _view(case, user, draws)
    if "sizes" in spec["mechanism"]:
        return _question(case, user, draws)
    variable = variable_of(case)
    return RESPONSES[variable.name](variable, variable.encode(user["value"], user["tag"], draws), draws)


def _in_slice(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """The payload of a report without public attributes, and the number of its slice."""
    by, number = case["spec"]["by"], 0
    whole = {**case, "spec": {key: value for key, value in case["spec"].items() if key != "by"}}
    for name, values in by.items():
        number = number * len(values) + values.index(user["by"][name])
    sent, of = payload(whole, user, draws), _symbols(whole)
    if of is not None and of * prod(map(len, by.values())) <= 2**31:
        assert isinstance(sent, int)
        return sent + of * number
    return number.to_bytes(2, "little") + (sent.to_bytes(4, "little") if isinstance(sent, int) else sent)


def _symbols(case: Mapping[str, Any]) -> int | None:
    """The number of payloads that are symbols, None for bytes."""
    if case["spec"]["mechanism"]["name"] != "sample-one":
        return symbols(variable_of(case))
    of_attributes = [symbols(each) for each in _attributes(case).values()]
    return None if None in of_attributes else sum(each or 0 for each in of_attributes)


def levels_of(spec: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> tuple[list[Variable], list[int]]:
    """The levels of a tree, as variables whose values are its blocks, and the widths of these."""
    mechanism, number = spec["mechanism"], spec["domain"].get("number")
    bins = mechanism.get("bins", 1024) if number else spec["domain"].get("size") or len(spec["domain"]["labels"])
    branching, epsilon = mechanism.get("branching", 4), mechanism["epsilon"]
    widths = [1]
    while widths[0] * branching < bins:
        widths.insert(0, widths[0] * branching)
    blocks = [-(-bins // width) for width in widths]
    names = ["rr" if of < 3 * exp(epsilon) + 2 else "pgr" for of in blocks]
    known = zip(names, blocks, parts, strict=True)
    return [Variable({"size": of}, {"name": name, "epsilon": epsilon}, part) for name, of, part in known], widths


def _block_of_a_level(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """The block of a tree that holds the value, of a level that is drawn first."""
    spec, number = case["spec"], case["spec"]["domain"].get("number")
    levels, widths = levels_of(spec, case["probabilities"]["parts"])
    value, bins = user["value"], levels[-1].size
    if number:
        low, high = number["low"], number["high"]
        inside = min(max(float(value), low), high)
        value = min(floor((inside - low) / (high - low) * bins), bins - 1)
    growth = [spec["mechanism"].get("branching", 4) ** (level / 3) for level in range(len(levels))]
    place, shares = draws.below(FLOATS), [each / sum(growth) for each in growth]
    last = len(levels) - 1
    drawn = next(i for i in range(len(levels)) if place < round(FLOATS * sum(shares[: i + 1])) or i == last)
    return _wrapped(levels, drawn, value // widths[drawn], draws)


def _prefix(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """The prefix of a length that is drawn first, or the whole string, as a string of ``cohort-olh``."""
    domain, mechanism = case["spec"]["domain"], case["spec"]["mechanism"]
    if "set" in domain:
        return _prefixes_of_set(case, user, draws)
    strings = domain["strings"]
    part = Variable({"strings": strings}, {**mechanism, "name": "cohort-olh"}, case["probabilities"]["parts"][0])
    depth = mechanism["depth"]
    place, drawn = draws.below(FLOATS), 0
    while drawn < depth and place >= round(FLOATS * (drawn + 1) / (depth + 1)):
        drawn += 1
    return _wrapped([part] * (depth + 1), drawn, _of_length(strings, mechanism, user["value"], drawn), draws)


def _of_length(strings: Mapping[str, Any], mechanism: Mapping[str, Any], text: str, number: int) -> int:
    """The symbol of the prefix of a length, or behind all lengths that of the whole string."""
    if number == mechanism["depth"]:
        return symbol_of(text, strings["longest"])
    spelled, first = spell(text, pieces_of(strings)), (number + 1) * mechanism.get("step", 1)
    return 0 if spelled is None else symbol_of("".join(spelled[:first]), strings["longest"] + 1 + number)


def _prefixes_of_set(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """The prefixes of a length of all strings of a set, or all whole strings, as a set of ``set-olh``."""
    domain, mechanism, parts = case["spec"]["domain"], case["spec"]["mechanism"], case["probabilities"]["parts"]
    of_sets = [Variable(domain, {**mechanism, "name": "set-olh"}, part) for part in parts]
    strings, drawn = domain["set"]["of"]["strings"], 0
    encoded = [
        of.string_set([_of_length(strings, mechanism, text, number) for text in user["value"]], draws)
        for number, of in enumerate(of_sets)
    ]
    place = draws.below(FLOATS)
    while drawn < len(parts) - 1 and place >= round(FLOATS * (drawn + 1) / len(parts)):
        drawn += 1
    return _wrapped(of_sets, drawn, encoded[drawn], draws)


def _question(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """The items of a set, or the range of its size, as the device draws."""
    spec, mechanism = case["spec"], case["spec"]["mechanism"]
    of_items, of_sizes = case["probabilities"]["parts"]
    items = Variable(spec["domain"], mechanism, of_items)
    most, width = 2 * items.held, 1
    while ranges_of(items.held, width) >= max(3 * items.e + 2, 3):
        width += 1
    size = Variable({"size": ranges_of(items.held, width)}, {**mechanism, "name": "rr"}, of_sizes)
    symbols = items.encode(user["value"], None, draws)
    of_set = (min(len(user["value"]), most) + -(items.held + 1) % width) // width
    drawn = int(draws.below(FLOATS) >= round(FLOATS * (1 - mechanism["sizes"])))
    return _wrapped([items, size], drawn, [symbols, of_set][drawn], draws)


def ranges_of(held: int, width: int) -> int:
    """The number of ranges of sizes up to 2l, of which one begins at l + 1."""
    return (2 * held + -(held + 1) % width) // width + 1


def pieces_of(strings: Mapping[str, Any]) -> set[str]:
    """The pieces of a spec: those that it lists, their characters, and the characters of the alphabet."""
    listed, text = strings.get("pieces", []), strings.get("alphabet", "")
    found = {*listed, *"".join(listed)}
    while text:
        if text[1:2] == "-" and len(text) > 2:
            found |= {chr(code) for code in range(ord(text[0]), ord(text[2]) + 1)}
            text = text[3:]
        else:
            found.add(text[0])
            text = text[1:]
    return found


def spell(text: str, known: set[str]) -> list[str] | None:
    """The pieces of a text, the longest first; None if it has a character that is no piece."""
    found = []
    while text:
        piece = next((text[:end] for end in range(len(text), 0, -1) if text[:end] in known), None)
        if piece is None:
            return None
        found.append(piece)
        text = text[len(piece) :]
    return found


def variable_of(case: Mapping[str, Any]) -> Variable:
    """The only variable of a case."""
    own = {key: case["spec"][key] for key in ("sensitive", "tags") if key in case["spec"]}
    return Variable(case["spec"]["domain"] | own, case["spec"]["mechanism"], case["probabilities"], files=case["files"])


def kept(case: Mapping[str, Any]) -> Device:
    """A device with a permanent response, whose reports have the draws of ``payload`` behind those of the response."""
    own = {key: case["spec"][key] for key in ("sensitive", "tags") if key in case["spec"]}
    return Device(Variable(case["spec"]["domain"] | own, case["spec"]["mechanism"], case["probabilities"]))


def _pair(spec: Mapping[str, Any], order: Sequence[int], draws: Draws) -> int:
    pairs, epsilon = list(combinations(range(len(order)), 2)), spec["mechanism"]["epsilon"]
    place = draws.below(FLOATS)
    drawn = next(i for i in range(len(pairs)) if place < round(FLOATS * (i + 1) / len(pairs)) or i == len(pairs) - 1)
    first, second = pairs[drawn]
    noisy, noise = draws.noise(2 / (exp(epsilon) + 1)), draws.below(2)
    return 2 * drawn + (noise if noisy else order.index(first) > order.index(second))


def _arm(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """A number by the bit or by the block, as the device draws: the share of the bit is the noise of the block."""
    spec, known = case["spec"], case["probabilities"]["parts"]
    bit, block = ({**spec["mechanism"], "name": name} for name in ("duchi", "block"))
    bit.pop("bins", None)  # they are those of the block
    parts = [Variable(spec["domain"], of, part) for of, part in zip((bit, block), known, strict=True)]
    points = [part.encode(user["value"], None, draws) for part in parts]
    bins, width = spec["mechanism"].get("bins", 1024), parts[1].printed["width"]
    noise = ceil(FLOATS * (bins + width) / (bins + width * parts[1].e))
    drawn = int(draws.below(FLOATS) >= noise)
    return _wrapped(parts, drawn, points[drawn], draws)


def _view(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    """The cell of one view, as a symbol by the mechanism for so many cells."""
    spec, known = case["spec"], case["probabilities"]["parts"]
    epsilon, sizes = spec["mechanism"]["epsilon"], {name: of["size"] for name, of in spec["domain"]["record"].items()}
    views = [[name for name in sizes if name in view] for view in views_of(spec)]
    parts, cells = [], []
    for view, part in zip(views, known, strict=True):
        size, z = 1, 0
        for name in view:
            size, z = size * sizes[name], z * sizes[name] + user["value"][name]
        small = "ss" if round(size / (exp(epsilon) + 1)) > 1 else "rr"
        name = small if size <= 256 else "rr" if size < 3 * exp(epsilon) + 2 else "pgr"
        parts.append(Variable({"size": size}, {"name": name, "epsilon": epsilon}, part))
        cells.append(z)
    place = draws.below(FLOATS)
    drawn = next(i for i in range(len(views)) if place < round(FLOATS * (i + 1) / len(views)) or i == len(views) - 1)
    return _wrapped(parts, drawn, cells[drawn], draws)


def views_of(spec: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """The views of a spec: those that it lists, or all pairs or triples of attributes."""
    views, names = spec["mechanism"]["views"], [*spec["domain"]["record"]]
    if isinstance(views, str):
        return list(combinations(names, {"pairs": 2, "triples": 3}[views]))
    return cast(Sequence[Sequence[str]], views)


def _record(case: Mapping[str, Any], user: Mapping[str, Any], draws: Draws) -> int | bytes:
    of, variables = case["spec"]["mechanism"]["of"], _attributes(case)
    encoded = [each.encode(user["value"][name], user["tag"][name], draws) for name, each in variables.items()]
    place, shares = draws.below(FLOATS), [of[name].get("share", 1 / len(of)) for name in variables]
    drawn = next(i for i in range(len(of)) if place < round(FLOATS * sum(shares[: i + 1])) or i == len(of) - 1)
    return _wrapped(list(variables.values()), drawn, encoded[drawn], draws)


def _attributes(case: Mapping[str, Any]) -> dict[str, Variable]:
    spec, parts = case["spec"], case["probabilities"]["parts"]
    of, epsilon = spec["mechanism"]["of"], spec["mechanism"]["epsilon"]
    return {
        name: Variable(domain, of[name] | {"epsilon": epsilon}, part, files=case["files"])
        for (name, domain), part in zip(spec["domain"]["record"].items(), parts, strict=True)
    }


def _wrapped(parts: Sequence[Variable], drawn: int, z: int | list[int], draws: Draws) -> int | bytes:
    """The payload of the drawn attribute or level, and its number."""
    own = RESPONSES[parts[drawn].name](parts[drawn], z, draws)
    if isinstance(own, int) and all(map(symbols, parts)):
        return own + sum(symbols(part) or 0 for part in parts[:drawn])
    own = own.to_bytes(4, "little") if isinstance(own, int) else own
    return (drawn.to_bytes(2, "little") + own).ljust(2 + max(map(width, parts)), b"\0")
