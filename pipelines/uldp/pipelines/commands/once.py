"""A group of commands that refuse an option that is given twice, where click takes the last and says nothing."""

from collections import Counter

import click


class OnceGroup(click.Group):
    """A group whose commands take each option once, unless it may be repeated."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments.

        Raises:
            click.UsageError: if there is no such command, or an option with one value is given twice.
        """
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            own = command.context_class(command, parent=ctx, info_name=name, **command.context_settings)
            _, _, order = command.make_parser(own).parse_args(list(rest))
            for parameter, times in Counter(order).items():
                single = isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
                if single and times > 1:
                    raise click.UsageError(f"{parameter.opts[-1]} is given {times} times; give it once", own)
        return name, command, rest
