"""`decon-assets settings`: list the tables and keys of decon.toml."""

from __future__ import annotations

import shutil
from textwrap import wrap
from typing import TYPE_CHECKING

from decon_assets.terminal.options import argument
from decon_assets.terminal.output import say, say_next, warn

if TYPE_CHECKING:
    from decon_core.config.setting_list import SettingTable

_WIDEST = 100
_INDENT = " " * 6
_HEADING = 25  # columns of the headings in the list of tables


def settings(
    names: list[str] | None = argument(
        "print these tables, or all keys whose names contain this", "NAME", default=None
    ),
) -> int:
    """List the tables of decon.toml, or print keys with defaults, meanings and types.

    Use it to look up a setting. Keys that are not in your decon.toml have their defaults.

    Examples:
      decon-assets settings                     all tables
      decon-assets settings mixture review      the keys of these tables, and of those within them
      decon-assets settings threshold           keys named like this, in any table
    """
    from decon_core.config.setting_list import SettingTable, setting_tables

    tables = [*setting_tables()]
    if not names:
        for table in tables:
            _say_wrapped(table.meaning, f"{table.heading:{_HEADING}}", " " * _HEADING)
        say_next("decon-assets settings TABLE")
        return 0
    for name in names:
        chosen = [table for table in tables if f"{table.name}.".startswith(f"{name.strip('[]')}.")]
        if not chosen:
            matching = (
                (table, [setting for setting in table.settings if name in setting.key])
                for table in tables
            )
            chosen = [SettingTable(*table[:2], keys) for table, keys in matching if keys]
        if not chosen:
            warn(
                f"{name}: no table or key of decon.toml has this name, or a name that contains it. "
                "`decon-assets settings` lists the tables"
            )
            return 2
        for table in chosen:
            _say(table)
    return 0


def _say(table: SettingTable) -> None:
    """Print a table: each key with its default, and below it what it means."""
    say(table.heading)
    _say_wrapped(table.meaning, "  ", "  ")
    for setting in table.settings:
        default = f" = {setting.default}" if setting.default else ""
        say(f"\n  {setting.key}{default}")
        kind = f"{setting.type}, required" if setting.is_required else setting.type
        _say_wrapped(f"{setting.meaning} ({kind})", _INDENT, _INDENT)
    say()


def _say_wrapped(text: str, first: str, indent: str) -> None:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    for line in wrap(text, width, initial_indent=first, subsequent_indent=indent):
        say(line)
