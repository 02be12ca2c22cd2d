"""How every benchmark here makes and shows a figure: runs interleaved, median and range, machine and versions, a table,
and JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

DATA = Path("../shared/data")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Finished:
    """What a process printed and how long it took from its start to its end."""

    seconds: float
    output: str
    error: str


def run_process(
    words: list[str], *, cwd: Path, exit_code: int = 0, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a command to its end; a benchmark of something that failed would be worth nothing."""
    began = time.perf_counter()
    finished = subprocess.run(
        words, cwd=cwd, capture_output=True, encoding="utf-8", env={**os.environ, **(environment or {})}
    )
    seconds = time.perf_counter() - began
    if finished.returncode != exit_code:
        sys.exit(f"{' '.join(words)}\nended with exit code {finished.returncode}:\n{finished.stderr}")
    return Finished(seconds, finished.stdout, finished.stderr)


def interleave(sides: Mapping[str, Callable[[], Result]], rounds: int) -> dict[str, list[Result]]:
    """Run all sides in turn, round after round, so that whatever else the machine does meets all of them."""
    results: dict[str, list[Result]] = {label: [] for label in sides}
    for round_ in range(rounds):
        for label, run in sides.items():
            print(f"round {round_ + 1} of {rounds}: {label}", file=sys.stderr, flush=True)
            results[label].append(run())
    return results


@dataclass(frozen=True)
class Spread:
    """A figure over all rounds. As text: median (lowest–highest)."""

    median: float
    lowest: float
    highest: float

    def __format__(self, specification: str) -> str:
        median, lowest, highest = (format(value, specification) for value in (self.median, self.lowest, self.highest))
        return f"{median} ({lowest}–{highest})"


def measure_spread(values: Iterable[float]) -> Spread:
    values = list(values)
    return Spread(statistics.median(values), min(values), max(values))


def find_data(data: Path) -> Path:
    """The folder of real text, or a sentence and the end."""
    if not data.is_dir():
        sys.exit(f"{data}: there is no such folder; say with --data where the real text lies.")
    return data.resolve()


def print_figures(headings: list[str], rows: list[list[str]], *, packages: list[str]) -> None:
    """Print a Markdown table, and below it where it was made."""
    print(" | ".join(["", *headings, ""]).strip())
    print("|---" + "|---:" * (len(headings) - 1) + "|")
    for row in rows:
        print(" | ".join(["", *row, ""]).strip())
    machine = _describe_machine(packages)
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    print(f"\n{machine['cores']} cores of {machine['processor']}; {versions}.\n")


def write_json(path: Path | None, figures: Mapping[str, Any], *, packages: list[str]) -> None:
    if path is not None:
        whole = {"machine": _describe_machine(packages), "figures": figures}
        path.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _describe_machine(packages: list[str]) -> dict[str, Any]:
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _name_processor(),
        "versions": {
            "Python": platform.python_version(),
            **{package: version(package) for package in ["malmoi", "numpy", "tokenizers", *packages]},
        },
    }


def _name_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
