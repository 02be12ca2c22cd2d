"""`malmoi check TASK`: look at the examples of a task before training on them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from malmoi.cli.page import Page
from malmoi.tasks.columns import Columns, TaskName

if TYPE_CHECKING:
    from malmoi.tasks.checking import Part, TaskReport

# At most so many labels are listed; the rest is in the JSON.
_LABELS_SHOWN = 30


def _command(task: TaskName, about: str) -> Callable[..., None]:
    def check_task(
        files: Annotated[list[Path], Parameter(help="Files to train on, folders, or - for standard input.")],
        /,
        *,
        dev: Annotated[
            list[Path] | None, Parameter(help="Files to evaluate on.", consume_multiple=True, negative="")
        ] = None,
        model: Annotated[
            str | None, Parameter(help="Folder of a model or a tokenizer, or a hub id, to count tokens with.")
        ] = None,
        columns: Columns | None = None,
        json_output: Annotated[bool, Parameter(name="--json", negative="", help="Print the report as JSON.")] = False,
    ) -> None:
        _check(task, files, dev or [], model, columns or Columns(), json_output)

    check_task.__doc__ = f"Say what is in examples of {about}, and what about them is suspicious."
    return check_task


classify = _command("classify", "texts with labels")
pair = _command("pair", "pairs of texts with labels")
regress = _command("regress", "texts or pairs of texts with a number")
tag = _command("tag", "words with tags")
answer = _command("answer", "questions about a context")
choose = _command("choose", "prompts with choices")
embed = _command("embed", "pairs of texts that are alike")


def _check(
    task: TaskName, files: list[Path], dev: list[Path], model: str | None, columns: Columns, as_json: bool
) -> None:
    from malmoi.tasks.checking import check_task
    from malmoi.tasks.lengths import open_meter

    report = check_task(task, files, dev, columns, open_meter(model))
    if as_json:
        print(json.dumps(asdict(report), ensure_ascii=False, indent=2))
    else:
        _print(report)
    for problem in report.problems:
        print(f"malmoi: {problem}", file=sys.stderr)
    if report.problems:
        raise SystemExit(2)


def _print(report: TaskReport) -> None:
    page = Page()
    parts = {"train": report.train} | ({"dev": report.dev} if report.dev else {})
    page.show(
        "Files",
        ["file", "part", "read as", "encoding", "columns", "examples", "empty"],
        [
            [
                file.path,
                name,
                file.format + (f", {file.compression}" if file.compression else ""),
                file.encoding or "–",
                file.field or "–",
                f"{file.documents:,}",
                f"{file.empty:,}",
            ]
            for name, part in parts.items()
            for file in part.files
        ],
        numbers_from=5,
    )
    labels = list(dict.fromkeys(label for part in parts.values() for label in part.labels))
    more = f", the {_LABELS_SHOWN} most frequent" if len(labels) > _LABELS_SHOWN else ""
    page.show(
        f"Labels: {len(labels):,}{more}",
        ["label", *parts],
        [[label, *(_share(part, label) for part in parts.values())] for label in labels[:_LABELS_SHOWN]],
    )
    for name, part in parts.items():
        _print_part(page, report, name, part)
    findings = {"dev examples that are also trained on": report.overlap, "labels only in dev": report.unseen_labels}
    for title, finding in findings.items():
        rows = [[item.place, item.text] for item in finding.examples]
        page.show(f"{title}: {finding.count:,}", ["where", ""], rows, 2)
    page.say(report.verdict)


def _print_part(page: Page, report: TaskReport, name: str, part: Part) -> None:
    page.show(f"Scores, {name}", ["", "value"], [[word, f"{value:.4g}"] for word, value in part.scores.items()])
    lengths = part.lengths
    limit = f"; the model takes {report.length_limit:,}" if report.length_limit else ""
    page.show(
        f"Lengths in {report.length_unit}, {name}: mean {lengths.mean}, median {lengths.median}, 95 % up to "
        f"{lengths.percentile_95:,}, 99 % up to {lengths.percentile_99:,}, longest {lengths.longest:,}{limit}",
        [report.length_unit, "examples", "share"],
        [[bounds, f"{count:,}", f"{count / max(1, part.examples):.1%}"] for bounds, count in lengths.histogram.items()],
    )
    whole = part.costs[-1].tokens if part.costs else 0
    page.show(
        f"Sequences, {name}: --seq-len is {report.seq_len} unless you say otherwise",
        ["--seq-len", "cut", "share", "tokens computed"],
        [
            [str(one.seq_len), f"{one.cut:,}", f"{one.cut / part.examples:.1%}", f"{one.tokens / whole:.0%}"]
            for one in part.costs
        ],
    )
    notes = {
        "left out by --skip-label": part.skipped,
        "questions without an answer": part.unanswerable,
        "answers with a wrong offset, mended": part.repaired_answers,
    }
    page.show(f"Notes, {name}", ["", "count"], [[word, f"{count:,}"] for word, count in notes.items() if count])
    findings = {
        "longer than sequences will be": part.too_long,
        "repeated examples": part.duplicates,
        "same text, other label": part.contradictions,
    }
    for title, finding in findings.items():
        rows = [[item.place, item.text] for item in finding.examples]
        page.show(f"{title}, {name}: {finding.count:,}", ["where", ""], rows, 2)


def _share(part: Part, label: str) -> str:
    count = part.labels.get(label, 0)
    return f"{count:,} ({count / max(1, sum(part.labels.values())):.1%})"
