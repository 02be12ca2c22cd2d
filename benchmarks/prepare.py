"""How fast text becomes tokens on disk: `malmoi prepare` against `datasets.map` on the same text and two processes.

    python benchmarks/prepare.py

malmoi's side is the whole command: start-up, reading, splitting into sentences, encoding, marking words, writing,
digests. The other side is a program that reads the same file with `load_dataset("text")` and maps the tokenizer over
its lines in its fastest setting: ids only, no special tokens, no splitting, and the Arrow files that the map leaves are
the result. It is measured whole, and by its map alone, which is then held against malmoi's whole command.

No text is repeated: malmoi encodes a word once, and repeated text would flatter it.
"""

from __future__ import annotations

import gzip
import html
import json as json_format
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import cyclopts
from measuring import DATA, find_data, interleave, measure_spread, print_figures, run_process, write_json

from malmoi.text.tokenizer import load_tokenizer

_PACKAGES = ["datasets", "transformers", "pyarrow"]
_PROCESSES = 2
_TRAINING_BYTES = 10_000_000
_SMALL_BYTES = 2_000_000
_VOCABULARIES = {
    "english": "bert-base-uncased_vocab.txt",
    "markup": "bert-base-uncased_vocab.txt",
    "korean": "krbert_char16424_vocab.txt",
}

TextName = Literal["english", "markup", "korean"]
Kind = Literal["wordpiece", "bpe", "unigram"]

app = cyclopts.App()


@app.default
def measure_prepare(
    *,
    data: Path = DATA,
    texts: tuple[TextName, ...] = ("english", "markup", "korean"),
    kinds: tuple[Kind, ...] = ("wordpiece", "bpe", "unigram"),
    megabytes: int = 100,
    vocab_size: int = 30_000,
    rounds: int = 3,
    small: bool = False,
    json: Path | None = None,
) -> None:
    """Time both sides on several texts, with a WordPiece, a byte-level BPE and a Unigram tokenizer.

    Args:
        data: The folder of real text.
        texts: English articles, the same with their wiki markup, Korean petitions and reviews.
        megabytes: How much of each text, at the most.
        vocab_size: Pieces of the BPE and the Unigram tokenizer; WordPiece has a public vocabulary.
        small: Only try whether everything runs; the figures mean nothing.
        json: Where to write the figures.
    """
    data = find_data(data)
    figures: dict[str, Any] = {}
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in texts:
            text = Path(folder) / f"{name}.txt"
            size = write_text(text, read_lines(data, name), _SMALL_BYTES if small else megabytes * 1_000_000)
            for kind in kinds:
                tokenizer = Path(folder) / f"{name}-{kind}"
                _make_tokenizer(tokenizer, kind, name, text, data, vocab_size)
                speed = _compare(text, tokenizer, rounds)
                figures[f"{name} {kind}"] = {"bytes": size, **asdict(speed)}
                rows.append([name, kind, *_describe_speed(speed, size / 1e6)])
    headings = [
        "text", "tokenizer", "malmoi, MB/s", "datasets, MB/s", "ratio",
        "datasets, map alone, MB/s", "ratio to that", "tokens, malmoi : datasets",
    ]  # fmt: skip
    print_figures(headings, rows, packages=_PACKAGES)
    write_json(json, figures, packages=_PACKAGES)


def read_lines(data: Path, name: TextName) -> Iterator[str]:
    """Real text, a document a line: a dump of the English Wikipedia, or Korean petitions and film reviews."""
    if name == "korean":
        return _read_korean(data)
    return _read_markup(data) if name == "markup" else _strip_markup(_read_markup(data))


def _read_markup(data: Path) -> Iterator[str]:
    with gzip.open(data / "enwik8" / "enwik8.gz", "rt", encoding="utf-8", errors="ignore", newline="\n") as file:
        yield from file


# A rough cut will do: what counts is that the words are those of prose.
_NOT_TEXT = re.compile(
    r"<[^>]*>|&lt;.*?&gt;|\{\{.*?\}\}|^ *[|!{}].*|\[?https?://\S+|\[\[[\w -]+:[^\]]*\]\]|^[*#:;= ]+|={2,}|'{2,}"
)
_LINK = re.compile(r"\[\[(?:[^|\]]*\|)?([^\]]*)\]\]")
_FEWEST_WORDS = 4


def _strip_markup(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        words = html.unescape(html.unescape(_LINK.sub(r"\1", _NOT_TEXT.sub(" ", line)))).split()
        if len(words) >= _FEWEST_WORDS:
            yield " ".join(words) + "\n"


def _read_korean(data: Path) -> Iterator[str]:
    for path in sorted((data / "petitions").glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            yield from (" ".join(json_format.loads(line)["content"].split()) + "\n" for line in file)
    for name in ("train.txt", "test.txt"):
        with (data / "nsmc" / name).open(encoding="utf-8", newline="\n") as file:
            next(file)  # the header
            yield from (line.split("\t")[1] + "\n" for line in file)


def write_text(path: Path, lines: Iterator[str], most_bytes: int) -> int:
    """Write lines up to a size without holding them in memory; returns the size."""
    size = 0
    with path.open("wb") as file:
        for line in lines:
            encoded = line.encode("utf-8")
            size += len(encoded)
            if size > most_bytes:
                return size - len(encoded)
            file.write(encoded)
    return size


def _make_tokenizer(out: Path, kind: Kind, name: TextName, text: Path, data: Path, vocab_size: int) -> None:
    if kind == "wordpiece":
        make_public_tokenizer(out, name, data)
        return
    print(f"training: {name} {kind}", file=sys.stderr, flush=True)
    sample = out.with_suffix(".txt")
    with text.open(encoding="utf-8", newline="\n") as file:
        write_text(sample, file, _TRAINING_BYTES)
    words = ["-m", "malmoi", "tokenizer", "train", str(sample), "--documents", "line", "--out", str(out)]
    run_process([sys.executable, *words, "--kind", kind, "--vocab-size", str(vocab_size)], cwd=out.parent)


def make_public_tokenizer(out: Path, name: TextName, data: Path) -> None:
    """The WordPiece tokenizer of a public model."""
    load_tokenizer(data / "vocabs" / _VOCABULARIES[name]).save(out)


# --- the two sides ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Speed:
    """Seconds of every round, and how many tokens each side made of the text."""

    malmoi_seconds: list[float]
    datasets_seconds: list[float]
    map_seconds: list[float]
    malmoi_tokens: int
    datasets_tokens: int


@dataclass(frozen=True)
class _Run:
    seconds: float
    work_seconds: float
    tokens: int


def _compare(text: Path, tokenizer: Path, rounds: int) -> Speed:
    sides = {
        f"malmoi prepare, {tokenizer.name}": partial(_run_malmoi, text, tokenizer),
        f"datasets.map, {tokenizer.name}": partial(_run_datasets, text, tokenizer),
    }
    malmoi, datasets = interleave(sides, rounds).values()
    return Speed(
        malmoi_seconds=[run.seconds for run in malmoi],
        datasets_seconds=[run.seconds for run in datasets],
        map_seconds=[run.work_seconds for run in datasets],
        malmoi_tokens=malmoi[0].tokens,
        datasets_tokens=datasets[0].tokens,
    )


def _run_malmoi(text: Path, tokenizer: Path) -> _Run:
    out = text.parent / "store"
    words = ["-m", "malmoi", "prepare", str(text), "--documents", "line", "--tokenizer", str(tokenizer)]
    command = [sys.executable, *words, "--out", str(out), "--workers", str(_PROCESSES), "--json"]
    finished = run_process(command, cwd=text.parent)
    shutil.rmtree(out)
    return _Run(finished.seconds, finished.seconds, json_format.loads(finished.output)["tokens"])


def _run_datasets(text: Path, tokenizer: Path) -> _Run:
    out = text.parent / "arrow"
    out.mkdir()
    finished = run_process(
        [sys.executable, __file__, "map-with-datasets", str(text), str(tokenizer), str(out)],
        cwd=text.parent,
        # A fresh cache each time, or the second round would find the work of the first.
        environment={"HF_HOME": str(out), "HF_HUB_OFFLINE": "1", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"},
    )
    work_seconds = float(finished.output)
    tokens = _count_arrow_tokens(out)
    shutil.rmtree(out)
    return _Run(finished.seconds, work_seconds, tokens)


@app.command(show=False)
def map_with_datasets(text: Path, tokenizer: Path, out: Path, /) -> None:
    """The other side, in a process of its own: write the ids of every line to `out`, print the seconds of the map."""
    from datasets import load_dataset  # type: ignore[import-untyped]
    from transformers import AutoTokenizer

    encode = AutoTokenizer.from_pretrained(tokenizer)

    def encode_lines(rows: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        encoded = encode(
            rows["text"],
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return {"input_ids": encoded["input_ids"]}

    lines = load_dataset("text", data_files=str(text), split="train")
    began = time.perf_counter()
    lines.map(
        encode_lines,
        batched=True,
        num_proc=_PROCESSES,
        remove_columns=["text"],
        cache_file_name=str(out / "tokens.arrow"),
    )
    print(time.perf_counter() - began)


def _count_arrow_tokens(out: Path) -> int:
    from datasets import Dataset

    shards = (Dataset.from_file(str(path)) for path in sorted(out.glob("tokens*.arrow")))
    lists = chain.from_iterable(shard.data.column("input_ids").chunks for shard in shards)
    return sum(len(chunk.flatten()) for chunk in lists)


def _describe_speed(speed: Speed, megabytes: float) -> list[str]:
    malmoi = measure_spread(megabytes / seconds for seconds in speed.malmoi_seconds)
    datasets = measure_spread(megabytes / seconds for seconds in speed.datasets_seconds)
    map_alone = measure_spread(megabytes / seconds for seconds in speed.map_seconds)
    return [
        f"{malmoi:.1f}",
        f"{datasets:.1f}",
        f"**{malmoi.median / datasets.median:.1f}×**",
        f"{map_alone:.1f}",
        f"{malmoi.median / map_alone.median:.1f}×",
        f"{speed.malmoi_tokens / speed.datasets_tokens:.4f}",
    ]


if __name__ == "__main__":
    app()
