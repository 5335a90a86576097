"""Whole pipelines over the transforms, and the command line that runs and reads them."""

from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest

__all__ = ["ResultsFolder", "newest"]
