"""Whole pipelines over the transforms, and the command line that runs and reads them."""

from uldp.pipelines.results.read import newest, read_counts, read_estimates, read_rejected
from uldp.pipelines.results.specs import read_specs

__all__ = ["newest", "read_counts", "read_estimates", "read_rejected", "read_specs"]
