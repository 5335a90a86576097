from .results.folder import ResultsFolder
from .results.newest import newest

__all__ = ["ResultsFolder", "newest"]
