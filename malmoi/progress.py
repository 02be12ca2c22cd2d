"""A progress bar with rate and time left: on a terminal a live bar, elsewhere a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_SECONDS_BETWEEN_LINES = 15.0


class Show(Protocol):
    """Say how much is done, and, where that has changed, of how much."""

    def __call__(self, done: int, total: int | None = None) -> None: ...


@contextmanager
def progress(description: str, total: int | None, unit: str) -> Iterator[Show]:
    """Yield `show(done)`: call it with how much of `total` is done; None as total means nobody knows (yet).

    With unit "B" amounts are printed as kB, MB, GB. Everything goes to standard error. The rate is that since the first
    call: what an earlier run had done then, or what it took to start, says nothing about the time left.
    """
    if sys.stderr.isatty():
        yield from _bar(description, total, unit)
    else:
        yield from _lines(description, total, unit)


def _bar(description: str, total: int | None, unit: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            done = task.completed - (task.fields["first"] or 0)
            return Text(_rate(done, task.elapsed or 0.0, unit), style="progress.data.speed")

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), Rate())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total, first=None)

        def show(done: int, total: int | None = None) -> None:
            if bar.tasks[task].fields["first"] is None:
                bar.reset(task, completed=done, first=done)
            bar.update(task, completed=done, total=total)

        yield show


def _lines(description: str, total: int | None, unit: str) -> Iterator[Show]:
    last = time.monotonic()
    first: tuple[float, int] | None = None
    known = total

    def show(done: int, total: int | None = None) -> None:
        nonlocal first, last, known
        known = total or known
        now = time.monotonic()
        first = first or (now, done)
        start, before = first
        if now - last < _SECONDS_BETWEEN_LINES or done == before:
            return
        last = now
        line = f"{description}: {_amount(done, unit)}"
        if known:
            left = (now - start) * (known - done) / (done - before)
            line += f" of {_amount(known, unit)}, {max(0, left):.0f} s left"
        print(f"{line}, {_rate(done - before, now - start, unit)}", file=sys.stderr, flush=True)

    yield show


def _rate(done: float, seconds: float, unit: str) -> str:
    """How much a second; nothing as long as there is nothing to tell it by."""
    return f"{_amount(done / seconds, unit)}/s" if done > 0 and seconds > 0 else ""


def _amount(count: float, unit: str) -> str:
    if unit != "B":
        # Large models make less than a step a second.
        return f"{count:,.0f} {unit}" if count >= 10 else f"{count:.2g} {unit}"
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:,.1f} {name}"
    return f"{count:,.0f} B"
