"""How long malmoi takes to say something: commands that do little, against a bare Python, and whether torch came along.

python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import cyclopts
from measuring import interleave, measure_spread, print_figures, run_process, write_json


def measure_startup(*, rounds: int = 15, json: Path | None = None) -> None:
    """Time commands that do little, and look whether they import torch."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Big enough to be a real file, small enough for start-up to be what is measured.
        (folder / "text.txt").write_text("A sentence of a corpus. Another one.\n\n" * 100, "utf-8")
        runs = {label: partial(_measure_command, command, folder) for label, command in _COMMANDS.items()}
        for run in runs.values():
            run()  # the first start of each reads its modules from the disk and compiles them
        seconds = interleave(runs, rounds)
        torch = {label: _imports_torch(command, folder) for label, command in _COMMANDS.items()}
    bare = statistics.median(seconds[_BARE])
    rows, figures = [], {}
    for label, times in seconds.items():
        milliseconds = measure_spread(1000 * one for one in times)
        more = milliseconds.median - 1000 * bare
        figures[label] = {"milliseconds": asdict(milliseconds), "more_than_bare": more, "torch": torch[label]}
        ratio = f"{milliseconds.median / (1000 * bare):.1f}×"
        rows.append([f"`{label}`", f"{milliseconds:.0f}", f"{more:+.0f}", ratio, "yes" if torch[label] else "no"])
    print_figures(
        ["command", "ms", "more than bare Python, ms", "ratio", "imports torch"], rows, packages=["cyclopts", "torch"]
    )
    write_json(json, figures, packages=["cyclopts", "torch"])


@dataclass(frozen=True)
class _Command:
    words: tuple[str, ...]
    exit_code: int = 0


_BARE = "python -c pass"
_COMMANDS = {
    _BARE: _Command(("-c", "pass")),
    "malmoi --help": _Command(("-m", "malmoi", "--help")),
    "malmoi check text.txt": _Command(("-m", "malmoi", "check", "text.txt")),
    "malmoi prepare … --sentences rule": _Command(
        ("-m", "malmoi", "prepare", "text.txt", "--tokenizer", "tok", "--out", "store", "--sentences", "rule"), 2
    ),
    "malmoi prepare … --tokenizer missing": _Command(
        ("-m", "malmoi", "prepare", "text.txt", "--tokenizer", "missing", "--out", "store"), 2
    ),
}


def _measure_command(command: _Command, folder: Path) -> float:
    return run_process([sys.executable, *command.words], cwd=folder, exit_code=command.exit_code).seconds


def _imports_torch(command: _Command, folder: Path) -> bool:
    """Python itself lists on standard error what it imports."""
    words = [sys.executable, "-X", "importtime", *command.words]
    finished = run_process(words, cwd=folder, exit_code=command.exit_code)
    imported = {
        line.rpartition("|")[2].strip() for line in finished.error.splitlines() if line.startswith("import time")
    }
    return "torch" in imported


if __name__ == "__main__":
    cyclopts.run(measure_startup)
