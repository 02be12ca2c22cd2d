"""Real sets of examples for the benchmarks of tasks: the first so many to learn from, others to judge by."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from malmoi.tasks.columns import TaskName
from malmoi.tasks.examples import Classified, Tagged
from malmoi.tasks.reading import read_examples


@dataclass(frozen=True)
class TaskSet:
    """`read(data, file)` gives the examples to learn from (file 0) or to judge by (file 1)."""

    task: TaskName
    read: Callable[[Path, int], Iterable[Any]]
    metric: str
    seq_len: int
    learn: int
    judge: int
    epochs: int

    def take(self, data: Path, learn: int | None, judge: int | None) -> tuple[list[Any], list[Any]]:
        sides = []
        for file, wanted in enumerate((learn or self.learn, judge or self.judge)):
            found = list(islice(self.read(data, file), wanted))
            if len(found) < wanted:
                sys.exit(f"there are {len(found):,} examples; ask for at most that many, not {wanted:,}.")
            sides.append(found)
        return sides[0], sides[1]


def _read_snli(data: Path, file: int) -> Iterator[Classified]:
    for label, first, second in _rows(data / "snli" / ("train.tsv", "test.tsv")[file]):
        if label != "-":
            yield Classified(first, second, (label,), "")


def _read_nsmc(data: Path, file: int) -> Iterator[Classified]:
    for _, text, label in _rows(data / "nsmc" / ("train.txt", "test.txt")[file]):
        if label != "label" and text.strip():
            yield Classified(text, None, (label,), "")


def _rows(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


def _read_names(data: Path, file: int) -> Iterator[Tagged]:
    """Sentences of WikiText-2; what is tagged are titles of Wikipedia, with the kind of thing that each is about."""
    topics = json.loads((data / "wiki" / "titles_en.json").read_text("utf-8"))
    titles = {
        tuple(re.findall(r"\w+|[^\w\s]", title)): topic
        for title, topic in topics.items()
        if title[0].isupper() and topic != "Uncategorized"
    }
    longest = max(map(len, titles))
    for line in (data / "wikitext-2" / ("train.txt", "valid.txt")[file]).read_text("utf-8").split("\n"):
        if line.startswith(" ="):
            continue
        for sentence in re.split(r"(?<= [.!?]) ", re.sub(r" @(.)@ ", r"\1", line).strip()):
            words = sentence.replace("<unk>", "unk").split()
            tags = _tag(words, titles, longest)
            if 5 <= len(words) <= 80 and any(tag != "O" for tag in tags):
                yield Tagged(tuple(words), tuple(tags), "")


def _tag(words: list[str], titles: dict[tuple[str, ...], str], longest: int) -> list[str]:
    tags = ["O"] * len(words)
    place = 1  # the first word of a sentence has a capital whatever it is
    while place < len(words):
        for length in range(min(longest, len(words) - place), 0, -1):
            topic = titles.get(tuple(words[place : place + length]))
            if topic is not None:
                name = topic.split()[0].upper()
                tags[place : place + length] = [f"B-{name}", *[f"I-{name}"] * (length - 1)]
                break
        else:
            length = 1
        place += length
    return tags


def _read_squad(data: Path, file: int) -> Iterator[Any]:
    """Every second article of SQuAD's development set to learn from, the others to judge by."""
    path = data / "squad" / "dev-v1.1.rebuilt.json"
    articles = json.loads(path.read_text("utf-8"))["data"][file::2]
    contexts = {paragraph["context"] for article in articles for paragraph in article["paragraphs"]}
    return (one for one in read_examples("answer", [path], labelled=True) if one.context in contexts)


SETS = {
    "snli": TaskSet("pair", _read_snli, "accuracy", seq_len=128, learn=20_000, judge=9000, epochs=1),
    "nsmc": TaskSet("classify", _read_nsmc, "accuracy", seq_len=128, learn=20_000, judge=9000, epochs=1),
    "names": TaskSet("tag", _read_names, "f1", seq_len=128, learn=2000, judge=1800, epochs=4),
    "squad": TaskSet("answer", _read_squad, "f1", seq_len=384, learn=5000, judge=2000, epochs=2),
}
