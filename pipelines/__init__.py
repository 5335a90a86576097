"""Whole pipelines over the transforms, and the command line that runs and reads them."""
