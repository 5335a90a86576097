"""Whole pipelines over the transforms, and the command line that runs and reads them."""

from uldp.pipelines.results.read import (
    newest,
    read_estimates,
    read_missing,
    read_panes,
    read_rejected,
    read_statistics,
)
from uldp.pipelines.results.specs import read_specs

__all__ = [
    "newest",
    "read_estimates",
    "read_missing",
    "read_panes",
    "read_rejected",
    "read_specs",
    "read_statistics",
]
