"""A group of commands that refuse an option that is given twice, where click takes the last and says nothing."""

from collections import Counter

import click


class OnceGroup(click.Group):
    """A group that takes each option once, as its commands do, unless it may be repeated."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the group's own options; click.UsageError if one with a single value is given twice."""
        _refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; click.UsageError if there is none, or an option is given twice."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            own = command.context_class(command, parent=ctx, info_name=name, **command.context_settings)
            _refuse_repeated(command, own, rest)
        return name, command, rest


def _refuse_repeated(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    _, _, order = command.make_parser(ctx).parse_args(list(args))
    for parameter, times in Counter(order).items():
        single = isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
        if single and times > 1:
            raise click.UsageError(f"{parameter.opts[-1]} is given {times} times; give it once", ctx)
