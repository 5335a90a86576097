"""These modules need what only `make mutants` installs."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("cosmic_ray") and find_spec("coverage") else ["changes.py", "explained.py", "runs.py"]
