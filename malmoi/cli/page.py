"""Tables and sentences on standard output: on a terminal as wide as it is, plain text elsewhere."""

from __future__ import annotations

import sys


class Page:
    """What a command prints, a table after the other. Nothing in a user's text is taken for markup."""

    def __init__(self) -> None:
        from rich.console import Console

        # A file or a pipe has no width to fold to.
        self._console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)

    def show(self, title: str, columns: list[str], rows: list[list[str]], numbers_from: int = 1) -> None:
        """A table, of which the columns from `numbers_from` on hold numbers; without rows nothing."""
        from rich.table import Table
        from rich.text import Text

        if not rows:
            return
        self._console.print(Text(title, style="bold"), soft_wrap=True)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for place, column in enumerate(columns):
            table.add_column(column, justify="right" if place >= numbers_from else "left", overflow="fold")
        for row in rows:
            # As Text, because a user's brackets are no markup.
            table.add_row(*map(Text, row))
        self._console.print(table)
        self._console.print()

    def say(self, sentence: str) -> None:
        """A paragraph of its own."""
        from rich.text import Text

        self._console.print(Text(sentence), soft_wrap=True)
