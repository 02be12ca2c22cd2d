"""How much memory `malmoi prepare` takes for a small and for a large corpus, and how many bytes a token takes on disk.

    python benchmarks/memory.py
    python benchmarks/memory.py long        the same corpus in a few long documents, and in many short ones

Memory is what the command and its workers hold together (resident set sizes added up, so pages they share count once
for each), looked at every 20 ms; the peak is the highest of these sums. Beside it stands the kernel's own record of
the largest single process, which misses nothing between two looks. The corpus is real text, repeated up to its size.
"""

from __future__ import annotations

import json as json_format
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cyclopts
import psutil  # type: ignore[import-untyped]
from measuring import DATA, find_data, interleave, measure_spread, print_figures, write_json
from prepare import TextName, make_public_tokenizer, read_lines, write_text

from malmoi.data.prepare import MEMORY_BOUND_MB
from malmoi.data.store import TOKENS, WORDS

_PACKAGES = ["psutil"]
_SECONDS_BETWEEN_LOOKS = 0.02
_MOST_GROWTH = 1.1


app = cyclopts.App()


@app.default
def measure_memory(
    *,
    data: Path = DATA,
    texts: tuple[TextName, ...] = ("english", "korean"),
    megabytes: tuple[int, int] = (100, 1000),
    workers: int = 2,
    rounds: int = 3,
    small: bool = False,
    json: Path | None = None,
) -> None:
    """Compare the peak memory for two sizes of corpus, and hold it against the bound that malmoi states.

    Ends with exit code 1 where memory grows by more than a tenth or passes the bound.

    Args:
        data: The folder of real text.
        texts: English articles, the same with their wiki markup, Korean petitions and reviews.
        megabytes: The two sizes.
        small: Only try whether everything runs; the figures mean nothing.
        json: Where to write the figures.
    """
    data = find_data(data)
    sizes = (2, 6) if small else megabytes
    figures: dict[str, Any] = {}
    rows: list[list[str]] = []
    for name in texts:
        with tempfile.TemporaryDirectory() as folder:
            comparison = _compare_sizes(Path(folder), data, name, sizes, workers, rounds)
        figures[name] = asdict(comparison)
        rows.append([name, *_describe(comparison)])
    headings = [
        "text", f"{sizes[0]} MB of text: peak, MB", f"{sizes[1]} MB of text: peak, MB", "ratio", "largest process, MB",
        "bound, MB", "tokens.bin + words.bin, bytes a token",
    ]  # fmt: skip
    print_figures(headings, rows, packages=_PACKAGES)
    write_json(json, figures, packages=_PACKAGES)
    # A small corpus ends before memory has reached its level.
    if not small and any(
        figure["growth"] > _MOST_GROWTH or figure["highest_mb"] > MEMORY_BOUND_MB for figure in figures.values()
    ):
        sys.exit("memory grows with the corpus by more than a tenth, or passes the bound")


@app.command(name="long")
def measure_long_documents(
    *,
    data: Path = DATA,
    texts: tuple[TextName, ...] = ("english", "korean"),
    documents: int = 6,
    characters: int = 15_000_000,
    workers: int = 2,
    json: Path | None = None,
) -> None:
    """The peak for a few documents that are as long as a document may be, of many lines and of a single one.

    Args:
        data: The folder of real text.
        texts: English articles, the same with their wiki markup, Korean petitions and reviews.
        documents: How many.
        characters: How long each is.
        json: Where to write the figures.
    """
    data = find_data(data)
    figures: dict[str, Any] = {}
    rows: list[list[str]] = []
    for name in texts:
        with tempfile.TemporaryDirectory() as folder:
            tokenizer, text = Path(folder) / "tokenizer", Path(folder) / "long.jsonl"
            make_public_tokenizer(tokenizer, name, data)
            for form, between in (("lines", "\n"), ("a single line", " ")):
                _write_long_documents(text, _repeat_lines(data, name), documents, characters, between)
                use = _run_prepare(text, tokenizer, workers)
                figures[f"{name}, {form}"] = asdict(use)
                rows.append([name, form, f"**{use.peak_mb:.0f}**", f"{use.largest_process_mb:.0f}"])
    headings = ["text", f"{documents} documents of {characters:,} characters", "peak, MB", "largest process, MB"]
    print_figures(headings, rows, packages=_PACKAGES)
    write_json(json, figures, packages=_PACKAGES)


def _write_long_documents(path: Path, lines: Iterator[str], documents: int, characters: int, between: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        for _ in range(documents):
            taken: list[str] = []
            missing = characters
            while missing > 0:
                taken.append(next(lines).rstrip("\n")[:missing])
                missing -= len(taken[-1]) + len(between)
            file.write(json_format.dumps({"text": between.join(taken)}, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class MemoryUse:
    """The memory of one run, in MB of a million bytes, and what its store takes."""

    peak_mb: float
    largest_process_mb: float
    bytes_per_token: float


@dataclass(frozen=True)
class Comparison:
    """All runs on the small and on the large corpus; `growth` is the ratio of their median peaks."""

    small: list[MemoryUse]
    large: list[MemoryUse]
    growth: float
    highest_mb: float
    bound_mb: float


def _compare_sizes(
    folder: Path, data: Path, name: TextName, sizes: tuple[int, int], workers: int, rounds: int
) -> Comparison:
    tokenizer = folder / "tokenizer"
    make_public_tokenizer(tokenizer, name, data)
    runs = {}
    for megabytes in sizes:
        text = folder / f"{megabytes}.txt"
        write_text(text, _repeat_lines(data, name), megabytes * 1_000_000)
        runs[f"{megabytes} MB, {name}"] = partial(_run_prepare, text, tokenizer, workers)
    small, large = interleave(runs, rounds).values()
    small_peak, large_peak = (measure_spread(use.peak_mb for use in uses) for uses in (small, large))
    return Comparison(
        small=small,
        large=large,
        growth=large_peak.median / small_peak.median,
        highest_mb=max(small_peak.highest, large_peak.highest),
        bound_mb=MEMORY_BOUND_MB,
    )


def _repeat_lines(data: Path, name: TextName) -> Iterator[str]:
    while True:
        yield from read_lines(data, name)


def _run_prepare(text: Path, tokenizer: Path, workers: int) -> MemoryUse:
    out = text.parent / "store"
    rule = ["--documents", "line"] if text.suffix == ".txt" else []
    words = ["-m", "malmoi", "prepare", str(text), *rule, "--tokenizer", str(tokenizer)]
    used = watch([sys.executable, *words, "--out", str(out), "--workers", str(workers)])
    manifest: dict[str, Any] = json_format.loads((out / "store.json").read_text("utf-8"))
    on_disk = sum((out / name).stat().st_size for name in (TOKENS, WORDS))
    shutil.rmtree(out)
    return MemoryUse(used.peak / 1e6, used.largest / 1e6, on_disk / manifest["tokens"])


@dataclass(frozen=True)
class Watched:
    """The highest sum of a command's processes' memory, and the most that a single one took, in bytes."""

    peak: int
    largest: int
    seconds: float


def watch(words: list[str], cwd: Path | None = None) -> Watched:
    """Run a command and look at its memory all the while."""
    began = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, cwd=cwd)
    tree = psutil.Process(process.pid)
    peak = 0
    while True:
        # Not Popen.poll: the record of the largest process comes with the end of the process, and only once.
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            break
        peak = max(peak, _add_up(tree))
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    if process.returncode:
        sys.exit(f"{' '.join(words)}\nended with exit code {process.returncode}")
    # Linux counts this in units of 1024 bytes, macOS in bytes.
    largest = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Watched(peak, largest, time.perf_counter() - began)


def _add_up(tree: psutil.Process) -> int:
    total = 0
    try:
        for process in (tree, *tree.children(recursive=True)):
            total += process.memory_info().rss
    except psutil.Error:
        pass  # it ended while we looked; the next look sees the rest
    return total


def _describe(comparison: Comparison) -> list[str]:
    largest = max(use.largest_process_mb for use in (*comparison.small, *comparison.large))
    return [
        f"{measure_spread(use.peak_mb for use in comparison.small):.0f}",
        f"{measure_spread(use.peak_mb for use in comparison.large):.0f}",
        f"**{comparison.growth:.3f}**",
        f"{largest:.0f}",
        f"{comparison.bound_mb:.0f}",
        f"{comparison.large[0].bytes_per_token:.3f}",
    ]


if __name__ == "__main__":
    app()
