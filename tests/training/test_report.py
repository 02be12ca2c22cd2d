"""The page of a run: what stands on it, that it needs nothing from outside, and where its figures come from."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from malmoi.checkpoint.bundle import create_bundle
from malmoi.data.holdout import split_store
from malmoi.objectives.masked import MASKED
from malmoi.objectives.options import ExampleOptions
from malmoi.systems.bert import BertConfig
from malmoi.training.facts import describe_data
from malmoi.training.fills import FilledGap, fill_held_out
from malmoi.training.options import TrainingOptions
from malmoi.training.pretraining import evaluation_batches
from malmoi.training.report import Curve, Reference, choose_ticks, draw_chart, smooth, write_report
from malmoi.values import IGNORED

EXAMPLES, TRAINING = ExampleOptions(seq_len=32), TrainingOptions(steps=10, batch_size=16)


def make_log(steps=40):
    return [
        {
            "step": step,
            "parts": {"mlm": 8 - step / 20, "nsp": 0.7},
            "accuracy": {"mlm": step / 200, "nsp": 0.5},
            "learning_rate": 1e-3,
            "tokens": 2048,
            "seconds": 0.1,
            **({"evaluation": _evaluation(step)} if step % 10 == 9 else {}),
        }
        for step in range(steps)
    ]


def _evaluation(step):
    return {"mlm_loss": 7.9 - step / 20, "mlm_accuracy": 0.2, "nsp_loss": 0.69, "nsp_accuracy": 0.55}


@pytest.fixture
def page(tmp_path):
    out = tmp_path / "run <1>"
    out.mkdir()
    fills = [FilledGap("ate", "yesterday", "rice", [("rice", 0.4), ("<script>", 0.1)])]
    tables = {"What was trained": {"steps": "40"}, "On what": {"vocabulary": "400 pieces"}}
    return write_report(out, make_log(), tables, fills, {"seed": 3}, 6.789).read_text("utf-8")


def test_everything_is_on_the_page(page):
    titles = re.findall(r"<h3>([^<]*)</h3>", page)
    assert titles == [
        "Hidden words: loss",
        "Hidden words: accuracy",
        "Next sentence: loss",
        "Next sentence: accuracy",
        "Learning rate",
        "Tokens a second",
    ]
    assert page.count("held out ") == 4 and "tokens 20.5k" in page
    assert "by word frequency 6.79" in page and page.count('<line class="reference"') == 1
    assert "costs the model 5.95 nats, 0.84 less than by the frequency of words alone" in page
    assert "<mark>rice</mark>" in page and "<b>rice</b> 40%" in page
    assert "<th>vocabulary</th><td>400 pieces</td>" in page and "&quot;seed&quot;: 3" in page


def test_it_opens_anywhere(page):
    """Without a network, in the dark, on a phone."""
    assert not re.search(r"https?:|//|<script|<link|<img|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page and "width=device-width" in page

    class Check(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "line", "circle"):
                self.open.append(tag)

        def handle_endtag(self, tag):
            if tag not in ("line", "circle", "polyline"):
                assert self.open.pop() == tag

        def handle_startendtag(self, tag, attributes):
            pass

    check = Check()
    check.feed(page)
    assert check.open == []


def test_a_run_with_nothing_held_out(tmp_path):
    log = [{name: value for name, value in record.items() if name != "evaluation"} for record in make_log(1)]
    page = write_report(tmp_path, log, {}, [], {}, None).read_text("utf-8")
    assert "1 steps." in page and "reference" not in page.split("</style>")[1] and "<circle" in page


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (3.2, 9.1), (0.69, 0.7), (5, 5), (0, 0), (0, 1e-3), (1.2e4, 5e4), (-1, 1)]
)
def test_ticks_are_round_and_reach_around_the_values(low, high):
    ticks = choose_ticks(low, high)
    assert 2 <= len(ticks) <= 7 and ticks == sorted(set(ticks))
    assert ticks[0] <= low + 1e-9 and ticks[-1] >= high - 1e-9
    assert all(len(f"{tick:.10g}") <= 9 for tick in ticks)


def test_the_reference_is_inside_the_chart():
    chart = draw_chart("x", [Curve("training", [1, 2], [5.0, 4.0])], Reference("by chance", 9.5))
    y = float(re.search(r'class="reference"[^>]* y1="([\d.]+)"', chart)[1])
    line = [float(y) for y in re.findall(r",([\d.]+)", re.search(r'points="([^"]*)"', chart)[1])]
    assert 0 < y < min(line)  # further up is more


def test_a_curve_is_smoothed_but_ends_where_it_was_going():
    assert smooth([1.0, 2.0]) == [1.0, 2.0]
    noisy = [value + (-1) ** step for step, value in enumerate(np.linspace(8, 4, 1000))]
    assert abs(smooth(noisy)[-1] - 4) < 0.1


def test_data_are_those_of_the_documents_trained_on(korean_store):
    learned, held_out = split_store(korean_store, 0.2, seed=0)
    facts = describe_data(learned, held_out, EXAMPLES, TRAINING, 10)

    def number(words):
        return int(re.search(r"([\d,]+) tokens", words)[1].replace(",", ""))

    assert number(facts["trained on"]) + number(facts["held out"]) == korean_store.manifest.tokens
    assert f"{len(learned.document_begins)} documents" in facts["trained on"]
    assert facts["vocabulary"] == f"{korean_store.manifest.vocab_size:,} pieces"
    assert re.match(r"1[45]\.\d% of the tokens: (79|80|81)% masked", facts["to be predicted"])
    assert float(facts["random next sentences"].rstrip("%")) > 45
    packed = describe_data(korean_store, None, ExampleOptions(seq_len=32, objective="mlm"), TRAINING, 10)
    assert packed["held out"] == "nothing" and "random next sentences" not in packed


def test_fills_are_gaps_of_the_batch(korean_store):
    size = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, max_position_embeddings=32
    )
    bundle = create_bundle(size, korean_store.tokenizer)
    batch = next(evaluation_batches(MASKED, korean_store, EXAMPLES, TRAINING))
    fills = fill_held_out(bundle, batch, 5)
    assert len(fills) == 5
    hidden = {korean_store.tokenizer.token(int(id_)) for id_ in batch.labels[batch.labels != IGNORED]}
    for fill in fills:
        shares = [share for _, share in fill.guesses]
        assert fill.truth in hidden and fill.truth.isalpha() and fill.before + fill.after
        assert len(shares) == 5 and shares == sorted(shares, reverse=True) and 0 < sum(shares) < 1
