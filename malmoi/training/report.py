"""A run in one page: curves, throughput, fills and data, drawn as SVG in a file that opens without a network."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from malmoi.data.folders import write_whole
from malmoi.training.fills import FilledGap

# A chart is drawn about as wide as a phone; wider screens show two side by side, so its letters keep their size.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM, _TOP = 420, 230, 54, 10, 24, 8
_POINTS = 400

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2937; --soft: #6b7280; --line: #e5e7eb; --paper: #fff; --shade: #f3f4f6;
  --first: #2563eb; --second: #c2410c; --right: #047857; }
@media (prefers-color-scheme: dark) { :root { --ink: #e5e7eb; --soft: #9ca3af; --line: #374151; --paper: #111827;
  --shade: #1f2937; --first: #60a5fa; --second: #fb923c; --right: #34d399; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 58rem; margin: 0 auto; padding: 1rem; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; margin: .5rem 0 0; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; } .lead { color: var(--soft); margin: 0; }
.charts, .tables { display: grid; gap: 1.5rem 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.tables { align-items: start; } .tables h2 { margin-top: 1rem; } figure { margin: 0; min-width: 0; max-width: 32rem; }
svg { display: block; width: 100%; height: auto; font-size: 12px; fill: var(--soft); }
svg line { stroke: var(--line); } svg polyline { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.reference { stroke: var(--soft); stroke-dasharray: 5 4; }
.legend { margin: 0; font-size: .875rem; display: flex; flex-wrap: wrap; gap: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .3rem .5rem .3rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; font-weight: 400; } th { color: var(--soft); width: 45%; }
ol { list-style: none; padding: 0; } li { padding: .6rem 0; border-bottom: 1px solid var(--line); }
mark { background: var(--shade); color: inherit; border-radius: .25rem; padding: 0 .35rem; font-weight: 600; }
.guesses { color: var(--soft); font-size: .875rem; } .guesses b { color: var(--right); }
pre { overflow-x: auto; background: var(--shade); padding: .75rem; border-radius: .25rem; font-size: .8125rem; }
summary { cursor: pointer; margin-top: 2rem; }
"""


@dataclass(frozen=True)
class Curve:
    """A line of a chart: its name and its points."""

    name: str
    steps: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Reference:
    """A value to compare a curve with: a dashed line across the chart."""

    name: str
    value: float


def write_report(
    out: Path,
    log: list[dict[str, Any]],
    tables: Mapping[str, Mapping[str, str]],
    fills: list[FilledGap],
    config: dict[str, Any],
    unigram_loss: float | None,
    warning: str = "",
) -> Path:
    """Write `out/report.html` from the steps of a run and what is worth knowing of it."""
    facts = "".join(f"<section>{make_table(title, rows)}</section>" for title, rows in tables.items())
    sections = [f'<div class="tables">{facts}</div>', arrange_charts(_charts(log, unigram_loss))]
    if fills:
        entries = "".join(map(_show_fill, fills))
        sections.append(
            '<h2>What it fills in</h2><p class="lead">Held-out text with one word hidden: the word that stood there, '
            f"and what the model would put.</p><ol>{entries}</ol>"
        )
    return write_page(out, warning + _sum_up(log, unigram_loss), sections, config)


def arrange_charts(charts: Sequence[str]) -> str:
    """Charts side by side where there is room."""
    return f'<h2>How it went</h2><div class="charts">{"".join(charts)}</div>'


def write_page(out: Path, summary: str, sections: Sequence[str], config: dict[str, Any]) -> Path:
    """Write `out/report.html`: a sentence, pieces of HTML, and the configuration at its end."""
    settings = escape(json.dumps(config, indent=1, ensure_ascii=False))
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width, initial-scale=1"><title>{escape(out.name)} – malmoi</title>'
        f'<style>{_STYLE}</style><h1>{escape(out.name)}</h1><p class="lead">{escape(summary)}</p>{"".join(sections)}'
        f"<details><summary>config.json</summary><pre>{settings}</pre></details></html>\n"
    )
    path = out / "report.html"
    write_whole(path, page)
    return path


def _sum_up(log: list[dict[str, Any]], unigram_loss: float | None) -> str:
    """What came out, in a sentence."""
    evaluated = [record["evaluation"] for record in log if "evaluation" in record]
    if not evaluated or unigram_loss is None:
        return f"{len(log):,} steps."
    loss, accuracy = evaluated[-1]["mlm_loss"], evaluated[-1]["mlm_accuracy"]
    gain = unigram_loss - loss
    return (
        f"After {len(log):,} steps a hidden word of held-out text costs the model {loss:.2f} nats, {abs(gain):.2f} "
        f"{'less' if gain >= 0 else 'more'} than by the frequency of words alone; it guesses {accuracy:.0%} of them."
    )


def _charts(log: list[dict[str, Any]], unigram_loss: float | None) -> list[str]:
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
            with_unigram = unigram_loss is not None and (name, kind) == ("mlm", "loss")
            reference = Reference("by word frequency", unigram_loss) if with_unigram and unigram_loss else None
            charts.append(draw_chart(f"{title}: {kind}", curves, reference))
    charts.append(draw_chart("Learning rate", [Curve("rate", steps, [record["learning_rate"] for record in log])]))
    speed = [record["tokens"] / max(record["seconds"], 1e-9) for record in log]
    charts.append(draw_chart("Tokens a second", [Curve("tokens", steps, smooth(speed))], from_zero=True))
    return charts


def smooth(values: Sequence[float]) -> list[float]:
    """A running mean over a fiftieth of the run, so that a curve shows where it goes."""
    width = max(1, len(values) // 50)
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    return [(sums[end] - sums[max(0, end - width)]) / min(end, width) for end in range(1, len(values) + 1)]


def draw_chart(title: str, curves: list[Curve], reference: Reference | None = None, *, from_zero: bool = False) -> str:
    """Curves over steps as SVG, with a legend that says where each one ends."""
    points = [point for curve in curves for point in zip(curve.steps, curve.values, strict=True)]
    if not points:
        return ""
    right = max(step for step, _ in points)
    values = [value for _, value in points] + ([reference.value] if reference else []) + ([0.0] if from_zero else [])
    ticks = choose_ticks(min(values), max(values))
    low, high = min(ticks[0], *values), max(ticks[-1], *values)

    def place(step: float, value: float) -> tuple[str, str]:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / max(right, 1)
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)
        return f"{x:.1f}", f"{y:.1f}"

    parts = []
    for value in ticks:
        _, y = place(0, value)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y}" text-anchor="end" dy=".32em">{_shorten(value)}</text>')
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        x, _ = place(right * share, low)
        parts.append(f'<text x="{x}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{right * share:,.0f}</text>')
    legend = []
    for colour, curve in zip(("var(--first)", "var(--second)"), curves, strict=False):
        every = max(1, len(curve.steps) // _POINTS)
        chosen = list(zip(curve.steps, curve.values, strict=True))[::-1][::every][::-1]
        line = " ".join(",".join(place(step, value)) for step, value in chosen)
        parts.append(f'<polyline points="{line}" style="stroke:{colour}"/>')
        if len(chosen) < 2:
            x, y = place(*chosen[0])
            parts.append(f'<circle cx="{x}" cy="{y}" r="3" style="fill:{colour}"/>')
        legend.append(f'<span style="color:{colour}">■ {escape(curve.name)} {_shorten(curve.values[-1])}</span>')
    if reference is not None:
        _, y = place(0, reference.value)
        parts.append(f'<line class="reference" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        legend.append(f"<span>┅ {escape(reference.name)} {_shorten(reference.value)}</span>")
    return (
        f'<figure><h3>{escape(title)}</h3><p class="legend">{"".join(legend)}</p><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'role="img" aria-label="{escape(title)}">{"".join(parts)}</svg></figure>'
    )


def choose_ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers that reach from one value to the other."""
    span = (high - low) or abs(high) or 1.0
    unit = 10 ** math.floor(math.log10(span / 3))
    step = next(factor * unit for factor in (1, 2, 5, 10) if span / (factor * unit) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _shorten(value: float) -> str:
    """Few characters: 7.25, 12.5k, 2e-4."""
    if abs(value) >= 1000:
        return f"{value / 1000:.3g}k"
    return f"{value:.2g}".replace("e-0", "e-") if abs(value) < 0.001 else f"{value:.3g}"


def _show_fill(fill: FilledGap) -> str:
    guesses = ", ".join(
        f"<b>{escape(token)}</b> {share:.0%}" if token == fill.truth else f"{escape(token)} {share:.0%}"
        for token, share in fill.guesses
    )
    return (
        f"<li>{escape(fill.before)} <mark>{escape(fill.truth)}</mark> {escape(fill.after)}"
        f'<div class="guesses">{guesses}</div></li>'
    )


def make_table(title: str, rows: Mapping[str, str]) -> str:
    """Names and what is to be said of them."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f"<h2>{escape(title)}</h2><table>{cells}</table>"
