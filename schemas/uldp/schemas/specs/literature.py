"""Names of mechanisms in the literature, and what a spec says in place of them; docs/mechanisms.md has the reasons."""

from collections.abc import Collection, Mapping

#: What to write, which begins with the name of a mechanism, and the names that it stands for.
IN_PLACE: Mapping[str, str] = {
    # Shares of values
    "warner": "W-RR BRR",
    "rr": "k-RR KRR GRR DE PBP",
    "sue": "UE",
    "sue, or another mechanism, with lasting_epsilon": "PRR IRR",
    "olh": "LH",
    "olh, or cohort-olh for strings that nobody lists": "CMS",
    "hrr": "HCMS S-Hist",
    "pgr": "HR",
    "she": "HE",
    "cohort-olh, or rr for values that the domain lists": "O-RR cohorts",
    "cohort-olh with candidates": "PEM",
    "bloom": "O-RAPPOR",
    "ss": "k-subset ω-SM",
    "bit-flip": "ωBitFlip dBitFlip",
    "bit-flip with lasting_epsilon": "ωBitFlipPM dBitFlipPM",
    "urr with tags": "PUM",
    # Definitions of privacy
    "rr, or any other mechanism with sensitive: all": "ε-LDP LDP",
    "urr, or another mechanism that takes a list of sensitive values": "ULDP",
    "levels": "PLDP PCE",
    "idue": "ID-LDP MinID-LDP",
    "metric": "d-privacy geo-indistinguishability CLDP SEM CSEM",
    # Numbers, and records
    "duchi": "1BitMean",
    "duchi with lasting_epsilon": "α-rounding",
    "block": "Laplace HM",
    "block with width: piecewise": "piecewise PM",
    "block with width: square-wave": "square-wave SW",
    "sample-one": "Harmony",
}

#: Names of systems with nothing in place of them.
LEFT_OUT = (
    "BLENDER PrivSet SVIM SVSM Calibrate PCKV CondiFre CALM HT THRESH A-RAPPOR LoPub LoCop PrivKV PrivKVM LDPMiner"
    " TreeHist LDPart PrivTrie SAFARI SVR LATENT FedSel FedLDA HaarHRR"
)

#: How a keyboard without Greek letters, or a page that names them, writes these.
_SPELLINGS = {"omega": "w", "ω": "w", "α": "alpha", "ε": "epsilon"}


def folded(name: str) -> str:
    """Return a name without case and hyphens, and in Latin letters.

    >>> folded("ω-SM"), folded("Omega_SM"), folded("w-sm")
    ('wsm', 'wsm', 'wsm')
    """
    name = name.casefold()
    for spelling, plain in _SPELLINGS.items():
        name = name.replace(spelling, plain)
    return "".join(character for character in name if character.isalnum())


_WRITE = {folded(name): write for write, names in IN_PLACE.items() for name in names.split()}
_NOT_HERE = {folded(name) for name in LEFT_OUT.split()}


def in_place_of(name: str, known: Collection[str]) -> str:
    """Return what to write in place of a name of the literature, or an empty string if it is none.

    Args:
        name: The name.
        known: The mechanisms that can be there.

    >>> in_place_of("S_Hist", ["rr", "hrr"]), in_place_of("S-Hist", ["rr"]), in_place_of("PrivKV", ["rr"])
    ('in place of it, write hrr', '', 'it is not here, and docs/mechanisms.md says why')
    """
    write = _WRITE.get(folded(name), "")
    if write and write.replace(",", "").split()[0] in known:
        return f"in place of it, write {write}"
    return "it is not here, and docs/mechanisms.md says why" if folded(name) in _NOT_HERE else ""
