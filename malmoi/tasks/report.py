"""A fine-tuning in one page: figures on the examples held out, curves, what was taken for what, the worst mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malmoi.tasks.kind import Mistake
from malmoi.training.report import Curve, arrange_charts, draw_chart, make_table, smooth, write_page

_LARGEST_MATRIX = 40
_SHOWN_CHARACTERS = 400


@dataclass(frozen=True)
class Judgement:
    """The model that is kept, after so many steps, on the examples held out; nothing but that if there are none."""

    kept: int
    figures: Mapping[str, float] = field(default_factory=dict)
    confusion: tuple[list[str], NDArray[np.int64]] | None = None
    mistakes: Sequence[Mistake] = ()


def write_task_report(
    out: Path,
    log: list[dict[str, Any]],
    facts: Mapping[str, str],
    judgement: Judgement,
    config: dict[str, Any],
    warning: str = "",
) -> Path:
    """Write `out/report.html`."""
    sections = [make_table("What was trained", facts), arrange_charts(_charts(log))]
    if judgement.confusion is not None and len(judgement.confusion[0]) <= _LARGEST_MATRIX:
        sections.append(_matrix(*judgement.confusion))
    if judgement.mistakes:
        sections.append(_mistakes(judgement.mistakes))
    return write_page(out, warning + _sum_up(len(log), judgement.kept, judgement.figures), sections, config)


def _sum_up(steps: int, kept: int, figures: Mapping[str, float]) -> str:
    """What came out, in a sentence."""
    if not figures:
        return f"{steps:,} steps."
    shown = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in figures.items())
    best = f", of which the best model, after step {kept:,}, is kept" if kept != steps else ""
    return f"{steps:,} steps{best}; held out: {shown}."


def _charts(log: list[dict[str, Any]]) -> list[str]:
    if not log:
        return []
    steps = [record["step"] + 1 for record in log]
    charts = [draw_chart("Loss", [Curve("training", steps, smooth([record["loss"] for record in log]))])]
    evaluated = [record for record in log if "evaluation" in record]
    places = [record["step"] + 1 for record in evaluated]
    for name in evaluated[0]["evaluation"] if evaluated else ():
        values = [record["evaluation"][name] for record in evaluated]
        charts.append(draw_chart(name.replace("_", " ").capitalize(), [Curve("held out", places, values)]))
    charts.append(draw_chart("Learning rate", [Curve("rate", steps, [record["learning_rate"] for record in log])]))
    speed = [record["tokens"] / max(record["seconds"], 1e-9) for record in log]
    charts.append(draw_chart("Tokens a second", [Curve("tokens/s", steps, smooth(speed))]))
    return charts


def _matrix(labels: list[str], counts: NDArray[np.int64]) -> str:
    head = "".join(f"<th>{escape(label)}</th>" for label in labels)
    rows = []
    for label, row in zip(labels, counts, strict=True):
        total = max(1, int(row.sum()))
        cells = "".join(
            f'<td style="background:rgba(37,99,235,{0.6 * count / total:.2f})">{count:,}</td>' for count in row.tolist()
        )
        rows.append(f"<tr><th>{escape(label)}</th>{cells}</tr>")
    return (
        "<h2>What was taken for what</h2><p>A row for each label, a column for what was predicted.</p>"
        f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"
    )


def _mistakes(mistakes: Sequence[Mistake]) -> str:
    rows = "".join(
        f"<tr><td>{escape(one.text[:_SHOWN_CHARACTERS])}</td><td>{escape(one.expected)}</td>"
        f"<td>{escape(one.predicted)}</td></tr>"
        for one in mistakes
    )
    return f"<h2>The worst mistakes</h2><table><tr><th>text</th><th>right</th><th>predicted</th></tr>{rows}</table>"
