"""The options of a benchmark that has a command of its own: each is a number, how much is measured."""

import argparse


def read_options(description: str | None, **defaults: int) -> argparse.Namespace:
    """Read the command line; ``description`` is the help, and each option has a default."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()
