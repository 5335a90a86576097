"""An option that takes one value is refused when it is given twice: click would take the last in silence."""

import click
import pytest

from tests.pipelines.command import Run
from uldp.pipelines.cli import cli

SINGLE = [
    pytest.param(name, option, id=f"{name}{option.opts[-1]}")
    for name, command in cli.commands.items()
    for option in command.params
    if isinstance(option, click.Option) and not (option.multiple or option.is_flag)
]


@pytest.mark.parametrize(("command", "option"), SINGLE)
def test_an_option_of_one_value_is_given_once(command: str, option: click.Option, uldp: Run) -> None:
    name, values = option.opts[-1], ("1",) * option.nargs
    code, _, err = uldp(command, name, *values, name, *values)
    assert (code, err) == (2, f"error: {name} is given 2 times; give it once (see uldp {command} --help)\n")


def test_options_before_the_command_too(uldp: Run) -> None:
    code, _, err = uldp("--files-below", ".", "--files-below", ".", "check", "s.yaml")
    assert (code, err) == (2, "error: --files-below is given 2 times; give it once (see uldp --help)\n")


def test_options_that_may_be_repeated_are() -> None:
    repeated = {option.opts[-1] for command in cli.commands.values() for option in command.params if option.multiple}
    assert "--spec" in repeated
