"""malmoi tokenizer train, extend, report"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from malmoi.data.outputs import refuse_inputs, refuse_old_folder
from malmoi.errors import MalmoiError
from malmoi.text.reading import Corpus, ReadOptions
from malmoi.text.sampling import Sample
from malmoi.text.sources import keep_standard_input
from malmoi.writing import writing

if TYPE_CHECKING:
    from malmoi.text.tokenizer import Tokenizer

# Unigram takes about four minutes for so much on two cores, and 1.2 GB; of a gigabyte it would learn for hours.
_UNIGRAM_MILLIONS = 30.0

Files = Annotated[list[str], Parameter(help="Files or folders with text; - is standard input.")]
Json = Annotated[bool, Parameter(negative="", help="Print the report as JSON.")]


def train(
    files: Files,
    /,
    *,
    kind: Annotated[Literal["wordpiece", "bpe", "unigram"], Parameter(help="What kind of pieces.")] = "wordpiece",
    vocab_size: Annotated[int, Parameter(help="How many pieces, special tokens included.")] = 8000,
    out: Annotated[Path, Parameter(help="Folder to write the tokenizer to.")],
    lowercase: Annotated[bool, Parameter(help="Lower-case and strip accents.")] = False,
    min_frequency: Annotated[int, Parameter(help="How often a pair must occur to become a piece.")] = 2,
    alphabet: Annotated[
        int | None, Parameter(help="How many characters to keep; default: a quarter of the size.")
    ] = None,
    sample: Annotated[
        float | None,
        Parameter(help="Millions of characters to learn from, 0 for all; default: 30 for unigram, else all."),
    ] = None,
    json: Json = False,
    reading: ReadOptions | None = None,
) -> None:
    """Learn a tokenizer from text."""
    from malmoi.text.tokenizer_training import train_tokenizer

    _refuse_output(out, [*files])
    if sample is not None and sample < 0:
        raise MalmoiError(f"--sample {sample:g}: give millions of characters, or 0 for all of the text.")
    millions = _UNIGRAM_MILLIONS if sample is None and kind == "unigram" else sample
    keep_standard_input(files)  # training reads its text twice
    texts = _Texts(files, reading, "training", most=int(millions * 1e6) if millions else None)
    tokenizer = train_tokenizer(
        texts if texts.can_be_repeated else iter(texts),
        kind=kind,
        vocab_size=vocab_size,
        lowercase=lowercase,
        min_frequency=min_frequency,
        alphabet=alphabet,
    )
    _save_new(tokenizer, out)
    if not json:
        fewer = f", all that the text supports of the {vocab_size:,} asked for"
        print(f"{out}: {tokenizer.vocab_size:,} pieces{fewer if tokenizer.vocab_size < vocab_size else ''}")
    _print_report(tokenizer, texts.sample, json)


def extend(
    tokenizer: Annotated[Path, Parameter(help="Folder of the tokenizer to start from.")],
    files: Annotated[list[str] | None, Parameter(help="Files or folders with text; - is standard input.")] = None,
    /,
    *,
    add: Annotated[int, Parameter(help="How many pieces to learn from the text.")] = 0,
    out: Annotated[Path, Parameter(help="Folder to write the new tokenizer to.")],
    words: Annotated[Path | None, Parameter(help="A file of words, one a line, to add as whole pieces.")] = None,
    json: Json = False,
    reading: ReadOptions | None = None,
) -> None:
    """Add pieces to a tokenizer. Ids that exist do not change."""
    from malmoi.text.tokenizer import load_tokenizer
    from malmoi.text.tokenizer_extension import extend_tokenizer

    if add <= 0 and words is None:
        raise MalmoiError("Nothing to add: say how many pieces to learn with --add, or which words with --words.")
    if add > 0 and not files:
        raise MalmoiError(f"--add {add} needs text to learn from: name files after the tokenizer.")
    _refuse_output(out, [*(files or []), tokenizer])
    texts = _Texts(files or [], reading, "counting words")
    before = load_tokenizer(tokenizer)
    after = extend_tokenizer(before, texts if files else (), add=add, words=_read_words(words))
    _save_new(after, out)
    if not json:
        print(f"{out}: {before.vocab_size:,} + {after.vocab_size - before.vocab_size:,} = {after.vocab_size:,} pieces")
    if files or json:
        _print_report(after, texts.sample, json)


def report(
    tokenizer: Annotated[Path, Parameter(help="Folder of the tokenizer, or a vocab.txt.")],
    files: Files,
    /,
    *,
    json: Json = False,
    reading: ReadOptions | None = None,
) -> None:
    """Say how well a tokenizer fits a text."""
    from malmoi.text.tokenizer import load_tokenizer

    loaded = load_tokenizer(tokenizer)
    _print_report(loaded, (document.text for document in Corpus(files, reading)), json)


class _Texts:
    """The texts of a corpus with a progress bar, or so many characters of them at the most, and it is said that there
    are more; keeps the beginning as a sample for the report."""

    def __init__(
        self, files: list[str], reading: ReadOptions | None, description: str, most: int | None = None
    ) -> None:
        self.corpus = Corpus(files, reading) if files else None
        self.description = description
        self.sample: list[str] = []
        self._most = most
        self._has_told = False

    def __iter__(self) -> Iterator[str]:
        if self._most is None:
            yield from self._read()
            return
        sample = Sample(self._read(), self._most, self._share)
        yield from sample
        if sample.taken < sample.seen and not self._has_told:
            self._has_told = True
            evenly = "" if self.corpus is None or self.corpus.total_bytes is None else ", evenly from all of it"
            print(
                f"malmoi: learning from {sample.taken / 1e6:,.3g} of {sample.seen / 1e6:,.3g} million characters "
                f"of the text{evenly}; --sample chooses how many, 0 takes all.",
                file=sys.stderr,
            )

    def _share(self) -> float:
        """How much of the corpus has been read; of a pipe nobody knows, so its beginning is taken."""
        assert self.corpus is not None
        return min(1.0, self.corpus.bytes_read / self.corpus.total_bytes) if self.corpus.total_bytes else 1.0

    def _read(self) -> Iterator[str]:
        from malmoi.progress import progress
        from malmoi.text.tokenizer_report import SAMPLE_BYTES

        assert self.corpus is not None
        self.sample, sampled = [], 0
        with progress(self.description, self.corpus.total_bytes, "B") as show:
            for document in self.corpus:
                show(self.corpus.bytes_read)
                # One text more than the report reads tells it that there is more.
                if sampled <= SAMPLE_BYTES:
                    self.sample.append(document.text)
                    sampled += len(document.text.encode("utf-8", "replace"))
                yield document.text

    @property
    def can_be_repeated(self) -> bool:
        """Whether the texts can be read twice; a named pipe can be read only once."""
        assert self.corpus is not None
        return all(source.is_standard_input or source.size is not None for source in self.corpus.sources)


def _read_words(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise MalmoiError(f"{path} is not UTF-8 text; save the list of words as UTF-8.") from None
    words = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not words:
        raise MalmoiError(f"{path} holds no words; it needs one word a line.")
    return words


def _refuse_output(out: Path, inputs: list[str | Path]) -> None:
    """Stop before the work begins where the result could not be written."""
    refuse_inputs(out, inputs, may_lie_within=True)
    # Whether a tokenizer that is there is the same shows when this one is made.
    refuse_old_folder(out, unless_it_holds="tokenizer.json")


def _save_new(tokenizer: Tokenizer, out: Path) -> None:
    from malmoi.text.tokenizer import load_tokenizer

    if out.is_dir() and any(out.iterdir()) and load_tokenizer(out).fingerprint != tokenizer.fingerprint:
        raise MalmoiError(f"--out {out} holds a different tokenizer already; name a new folder.")
    with writing(out):
        tokenizer.save(out)


def _print_report(tokenizer: Tokenizer, texts: Iterable[str], as_json: bool) -> None:
    import json
    from dataclasses import asdict

    from malmoi.text.tokenizer_report import report_tokenizer

    figures = report_tokenizer(tokenizer, texts)
    print(json.dumps(asdict(figures), ensure_ascii=False) if as_json else "\n".join(figures.lines()))
