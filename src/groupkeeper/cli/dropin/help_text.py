"""The help of the drop-in commands: two columns, in the form of jopt-simple's."""

from __future__ import annotations

from textwrap import wrap

from groupkeeper.cli.dropin.options import Option, OptionTable

_NAMES = 38
_TEXTS = 39


def render(table: OptionTable) -> str:
    """All options in order of their names, with what each takes and does."""
    title = "Option (* = required)" if any(option.required for option in table.options.values()) else "Option"
    lines = [_line(title, "Description"), _line("-" * len(title), "-----------")]
    for name in sorted(table.options):
        option = table.options[name]
        left = wrap(signature(option), _NAMES, subsequent_indent="  ", break_on_hyphens=False)
        right = wrap(described(option), _TEXTS, subsequent_indent="  ", break_on_hyphens=False)
        for row in range(max(len(left), len(right))):
            lines.append(_line(left[row] if row < len(left) else "", right[row] if row < len(right) else ""))
    return "\n".join(lines) + "\n"


def signature(option: Option) -> str:
    """The option with its value: ``--timeout <Long: timeout (ms)>``."""
    name = f"* --{option.name}" if option.required else f"--{option.name}"
    if option.argument is None:
        return name
    value = f"{option.kind}: {option.argument}" if option.argument else option.kind
    return f"{name} " + (f"[{value}]" if option.optional else f"<{value}>")


def described(option: Option) -> str:
    """What the option does, and its default."""
    return option.help if option.default is None else f"{option.help} (default: {option.default})"


def _line(left: str, right: str) -> str:
    return f"{left:<{_NAMES + 2}}{right:<{_TEXTS}}"
