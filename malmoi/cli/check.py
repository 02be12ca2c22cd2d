"""`malmoi check`: look at a corpus before training on it. `malmoi check TASK` (check_task.py): at a task's examples."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from malmoi.cli.page import Page
from malmoi.tasks.columns import TASK_NAMES
from malmoi.text.reading import Corpus, ReadOptions
from malmoi.text.sentences import SplitterKind, sentence_splitter

if TYPE_CHECKING:
    from malmoi.text.checking import CorpusReport, Finding

app = App(name="check")


@app.default
def check(
    files: Annotated[list[Path], Parameter(help="Files, folders, or - for standard input.")],
    /,
    *,
    read: ReadOptions | None = None,
    sentences: Annotated[SplitterKind, Parameter(help="How documents are cut into sentences.")] = "rules",
    json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print the report as JSON.")] = False,
) -> None:
    """Say what is in a corpus, and what about it is suspicious, before you train on it.

    With the name of a task before the files: what is in its examples. A file that is called like a task is ./classify.
    """
    from malmoi.progress import progress
    from malmoi.text.checking import check_corpus

    corpus = Corpus(files, read or ReadOptions())
    splitter = sentence_splitter(sentences)
    with progress("checking", corpus.total_bytes, "B") as show:
        report = check_corpus(corpus, splitter, show)
    if json_output:
        print(json.dumps(asdict(report), ensure_ascii=False, indent=2))
    else:
        _print(report)
    for problem in report.problems:
        print(f"malmoi: {problem}", file=sys.stderr)
    if report.problems:
        raise SystemExit(2)


for name in TASK_NAMES:
    app.command(f"malmoi.cli.check_task:{name}", name=name)


def _print(report: CorpusReport) -> None:
    page = Page()
    show = page.show
    show(
        "Files",
        ["file", "read as", "encoding", "cut by", "documents", "empty"],
        [
            [
                file.path,
                ", ".join(filter(None, [file.format, file.compression, None if file.header else "no header"])),
                file.encoding or "–",
                file.rule or (f"field {file.field}" if file.field else "–"),
                f"{file.documents:,}",
                f"{file.empty:,}",
            ]
            for file in report.files
        ],
        numbers_from=4,
    )
    counts = {
        "documents": report.documents,
        "sentences": report.sentences,
        "words": report.words,
        "characters": report.characters,
    }
    show("Contents", ["", "count"], [[name, f"{count:,}"] for name, count in counts.items()])
    show(
        "Characters",
        ["script", "count", "share"],
        [
            [script, f"{count:,}", f"{count / report.characters:.2%}"]
            for script, count in sorted(report.scripts.items(), key=lambda item: -item[1])
        ],
    )
    lengths = report.sentence_lengths
    show(
        f"Sentence lengths in characters: mean {lengths.mean}, median {lengths.median}, 95 % up to "
        f"{lengths.percentile_95:,}, 99 % up to {lengths.percentile_99:,}, longest {lengths.longest:,}",
        ["characters", "sentences", "share"],
        [[name, f"{count:,}", f"{count / max(1, report.sentences):.1%}"] for name, count in lengths.histogram.items()],
    )
    findings: dict[str, Finding] = {
        "repeated documents": report.duplicate_documents,
        f"repeated sentences (error rate {report.duplicate_error_rate:.1g})": report.duplicate_sentences,
        "documents not in NFC": report.not_nfc,
        "over-long lines": report.long_lines,
        **{f"suspected: {kind}": finding for kind, finding in report.mojibake.items()},
    }
    for name, finding in findings.items():
        show(f"{name}: {finding.count:,}", ["where", ""], [[item.place, item.text] for item in finding.examples], 2)
    page.say(report.verdict)
