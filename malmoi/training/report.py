"""A run in one page: curves, throughput, fills and data, drawn as SVG in a file that opens without a network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from malmoi.data.folders import write_whole

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 260, 56, 28, 12
_COLOURS = ("#2563eb", "#dc2626", "#059669", "#7c3aed")
_POINTS = 400

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem; color: #1f2937; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
svg { width: 100%; height: auto; } table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #e5e7eb; overflow-wrap: anywhere; }
.legend span { margin-right: 1rem; } pre { overflow-x: auto; background: #f3f4f6; padding: .5rem; }
@media (prefers-color-scheme: dark) { body { background: #111827; color: #e5e7eb; }
  td, th { border-color: #374151; } pre { background: #1f2937; } }
"""


@dataclass(frozen=True)
class Curve:
    """A line of a chart: its name and its points."""

    name: str
    steps: Sequence[float]
    values: Sequence[float]


def write_report(
    out: Path, log: list[dict[str, Any]], facts: dict[str, str], fills: list[tuple[str, str]], config: dict[str, Any]
) -> Path:
    """Write `out/report.html` from the steps of a run and what is worth knowing of it."""
    sections = [make_table("What was trained", list(facts.items())), *_charts(log)]
    if fills:
        sections.append(make_table("What it fills in", fills))
    return write_page(out, sections, config)


def write_page(out: Path, sections: Sequence[str], config: dict[str, Any]) -> Path:
    """Write `out/report.html` from pieces of HTML, with the configuration at its end."""
    settings = escape(json.dumps(config, indent=1, ensure_ascii=False))
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(out.name)} – malmoi</title>'
        f"<style>{_STYLE}</style><h1>{escape(out.name)}</h1>{''.join(sections)}"
        f"<details><summary>config.json</summary><pre>{settings}</pre></details></html>\n"
    )
    path = out / "report.html"
    write_whole(path, page)
    return path


def _charts(log: list[dict[str, Any]]) -> list[str]:
    steps = [record["step"] + 1 for record in log]
    evaluated = [record for record in log if "evaluation" in record]
    charts = []
    for name, title in (("mlm", "Hidden words"), ("nsp", "Next sentence")):
        if not log or name not in log[0]["parts"]:
            continue
        for kind, field in (("loss", "parts"), ("accuracy", "accuracy")):
            curves = [Curve("training", steps, smooth([record[field][name] for record in log]))]
            if evaluated:
                values = [record["evaluation"][f"{name}_{kind}"] for record in evaluated]
                curves.append(Curve("held out", [record["step"] + 1 for record in evaluated], values))
            charts.append(draw_chart(f"{title}: {kind}", curves))
    charts.append(draw_chart("Learning rate", [Curve("rate", steps, [record["learning_rate"] for record in log])]))
    speed = [record["tokens"] / max(record["seconds"], 1e-9) for record in log]
    charts.append(draw_chart("Tokens a second", [Curve("tokens/s", steps, smooth(speed))]))
    return charts


def smooth(values: Sequence[float]) -> list[float]:
    """A running mean over a fiftieth of the run, so that a curve shows where it goes."""
    width = max(1, len(values) // 50)
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    return [(sums[end] - sums[max(0, end - width)]) / min(end, width) for end in range(1, len(values) + 1)]


def draw_chart(title: str, curves: list[Curve]) -> str:
    """Curves over steps as SVG, with a legend."""
    points = [point for curve in curves for point in zip(curve.steps, curve.values, strict=True)]
    if not points:
        return ""
    right = max(step for step, _ in points)
    low, high = min(value for _, value in points), max(value for _, value in points)
    span = (high - low) or abs(high) or 1.0
    low, high = low - 0.05 * span, high + 0.05 * span

    def place(step: float, value: float) -> str:
        x = _LEFT + (_WIDTH - _LEFT - 8) * step / max(right, 1)
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)
        return f"{x:.1f},{y:.1f}"

    parts = []
    for level in range(5):
        value = low + (high - low) * level / 4
        y = place(0, value).partition(",")[2]
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y}" y2="{y}" stroke="#9ca3af" stroke-width=".4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y}" text-anchor="end" dy=".3em">{value:.3g}</text>')
    for share in (0, 0.5, 1):
        x = place(right * share, low).partition(",")[0]
        parts.append(f'<text x="{x}" y="{_HEIGHT - 8}" text-anchor="middle">{right * share:,.0f}</text>')
    for colour, curve in zip(_COLOURS, curves, strict=False):
        every = max(1, len(curve.steps) // _POINTS)
        chosen = list(zip(curve.steps, curve.values, strict=True))[::-1][::every][::-1]
        line = " ".join(place(step, value) for step, value in chosen)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
    legend = "".join(
        f'<span style="color:{colour}">■ {escape(curve.name)} {curve.values[-1]:.4g}</span>'
        for colour, curve in zip(_COLOURS, curves, strict=False)
    )
    return (
        f'<h2>{escape(title)}</h2><p class="legend">{legend}</p><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-size="11" fill="currentColor">{"".join(parts)}</svg>'
    )


def make_table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names and what is to be said of them."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f"<h2>{escape(title)}</h2><table>{cells}</table>"
