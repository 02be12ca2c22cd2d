"""Exact match and F1 as SQuAD's programs define them, written here a second time from their description."""

import json
import math
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from malmoi.tasks.answer_metrics import find_best_thresholds
from malmoi.tasks.answering import Answering
from malmoi.tasks.examples import Answer, Question
from malmoi.tasks.metrics import best_threshold, normalize_answer, score_answers, score_answers_or_none
from malmoi.tasks.predictions import FoundSpan, Reply

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def plain(text):
    """Lower case; punctuation away; the words a, an, the away; white space to single spaces."""
    text = "".join(character for character in text.lower() if character not in PUNCTUATION)
    # A word boundary stands wherever \w meets \W, so "the·cat" (with a dot above) has two words.
    words = [" " if word in ("a", "an", "the") else word for word in re.split(r"(\W)", text)]
    return " ".join("".join(words).split())


def overlap(gold, predicted, version):
    gold, predicted = plain(gold).split(), plain(predicted).split()
    if version == 2 and (not gold or not predicted):
        return float(gold == predicted)
    left, same = list(gold), 0
    for word in predicted:
        if word in left:
            left.remove(word)
            same += 1
    return 2 * same / (len(gold) + len(predicted)) if same else 0.0


def scores(gold, predicted, version):
    """Exact match and F1 of each question."""
    exact, f1 = {}, {}
    for id, answers in gold.items():
        if version == 2:
            if id not in predicted:
                continue
            answers = [answer for answer in answers if plain(answer)] or [""]
        exact[id] = max((float(plain(one) == plain(predicted[id])) for one in answers if id in predicted), default=0)
        f1[id] = max((overlap(one, predicted[id], version) for one in answers if id in predicted), default=0)
    return exact, f1


words = st.sampled_from(
    ["the", "a", "An", "cat", "Cat.", "서울", "1,000", "—", "'s", "don't", "the-end", "\u00a0", "İ"]
)
texts = st.lists(words, max_size=4).map(" ".join)
questions = st.lists(
    st.tuples(
        st.lists(texts, max_size=3), st.one_of(st.none(), texts), st.sampled_from([0.0, 0.2, 0.5, 0.5, 0.9, 1.0])
    ),
    min_size=1,
    max_size=12,
)


@given(st.text())
def test_normalisation(text):
    assert normalize_answer(text) == plain(text)


def test_normalisation_of_samples():
    assert normalize_answer("The  Cat's\tan A.B.") == "cats ab"
    assert normalize_answer("a.n.") == ""
    assert normalize_answer("서울, the 수도") == "서울 수도"


@given(questions)
def test_version_1(given):
    gold = {str(number): one[0] or ["x"] for number, one in enumerate(given)}
    predicted = {str(number): one[1] for number, one in enumerate(given) if one[1] is not None}
    exact, f1 = scores(gold, predicted, 1)
    ours = score_answers(gold, predicted)
    assert ours == {"exact_match": approx(sum(exact.values()) / len(gold)), "f1": approx(sum(f1.values()) / len(gold))}


@given(questions, st.sampled_from([0.0, 0.3, 0.5, 1.0]))
@settings(max_examples=300)
def test_version_2(given, threshold):
    gold = {str(number): one[0] for number, one in enumerate(given)}
    predicted = {str(number): one[1] for number, one in enumerate(given) if one[1] is not None}
    sureness = {str(number): one[2] for number, one in enumerate(given)}
    raw = dict(zip(("exact_match", "f1"), scores(gold, predicted, 2), strict=True))
    ours = score_answers_or_none(gold, predicted, sureness, threshold)
    groups = {"": list(raw["f1"])}
    groups["has_answer_"] = [id for id in groups[""] if gold[id]]
    groups["no_answer_"] = [id for id in groups[""] if not gold[id]]
    for name, of in raw.items():
        for prefix, ids in groups.items():
            if ids:
                kept = [float(not gold[id]) if sureness[id] > threshold else of[id] for id in ids]
                assert ours[prefix + name] == approx(sum(kept) / len(ids))
        if predicted:
            best, at = search(gold, predicted, of, sureness)
            assert (ours[f"best_{name}"], ours[f"best_{name}_threshold"]) == (approx(best), at)
    if predicted:
        assert best_threshold(gold, predicted, sureness) == (ours["best_f1"], ours["best_f1_threshold"])
    plain_scores = score_answers_or_none(gold, predicted)
    assert "best_f1" not in plain_scores
    assert same(plain_scores["f1"], sum(raw["f1"].values()) / len(predicted) if predicted else math.nan)


def search(gold, predicted, raw, sureness):
    """Every prefix of the questions, surest first, is answered and the rest is not: the first best prefix counts."""
    order = [id for id in sorted(sureness, key=sureness.get) if id in raw]
    nothing = sum(not answers for answers in gold.values())
    totals = [(nothing, 0.0)]
    for count in range(1, len(order) + 1):
        answered = order[:count]
        gained = sum(raw[id] for id in answered if gold[id])
        lost = sum(bool(predicted[id]) for id in answered if not gold[id])
        totals.append((nothing + gained - lost, sureness[answered[-1]]))
    best = max(total for total, _ in totals)
    return best / len(raw), next(at for total, at in totals if total >= best - 1e-12)


def same(one, two):
    return (math.isnan(one) and math.isnan(two)) or one == approx(two)


@given(questions, st.lists(st.floats(-9, 9).map(lambda one: round(one, 3)), min_size=12, max_size=12, unique=True))
def test_the_best_threshold_gives_the_best_scores(given, margins):
    """Also where all margins are below 0, or nothing should be answered."""
    gold = {str(number): one[0] for number, one in enumerate(given)}
    # SQuAD's search takes "the" for an answer, its score does not; no model answers that.
    predicted = {str(number): one[1] if normalize_answer(one[1] or "") else "cat" for number, one in enumerate(given)}
    sureness = {str(number): margin for number, margin in zip(range(len(given)), margins, strict=False)}
    ours = find_best_thresholds(gold, predicted, sureness)
    for name in ("exact_match", "f1"):
        # Every threshold there can be, by SQuAD's own rule.
        tried = [score_answers_or_none(gold, predicted, sureness, at)[name] for at in (-10, *sureness.values())]
        at = ours[f"best_{name}_threshold"]
        assert ours[f"best_{name}"] == approx(max(tried))
        assert score_answers_or_none(gold, predicted, sureness, at)[name] == approx(max(tried))


def ask(id, answer, *, impossible=False):
    return Question(id, "?", "Paris is the capital", () if impossible else (Answer(answer, 0),), impossible, "here")


def reply(text, *, none=False, margin=-1.0):
    span = FoundSpan(text, 0, len(text), 0.9)
    return Reply(None if none else span, (span,), 0.1, margin)


def test_questions_of_one_id_are_scored_each():
    kind = Answering(None, None, 64)
    figures = kind.measure([ask("same", "Paris"), ask("same", "capital")], [reply("Paris"), reply("Paris")])
    assert figures == {"exact_match": 0.5, "f1": 0.5}


def test_the_thresholds_of_evaluate_are_those_of_the_candidates():
    kind = Answering(None, None, 64)
    asked = [ask("a", "Paris"), ask("b", "", impossible=True)]
    # The model says "no answer" to both, by more or by less.
    found = kind.find_thresholds(asked, [reply("Paris", none=True, margin=1.5), reply("is", none=True, margin=4.0)])
    assert found == {"best_exact_match": 1, "best_exact_match_threshold": 1.5, "best_f1": 1, "best_f1_threshold": 1.5}
    assert kind.find_thresholds(asked[:1], [reply("Paris")]) == {}


def test_exact_matches_are_no_mistakes():
    kind = Answering(None, None, 64)
    assert kind.find_mistake(ask("a", "The Paris."), reply("paris")) is None
    assert kind.find_mistake(ask("a", "Paris"), reply("Paris is")).predicted == "Paris is"
    assert kind.find_mistake(ask("a", "Paris"), reply("Paris", none=True)).predicted == "no answer"
    assert kind.find_mistake(ask("a", "", impossible=True), reply("Paris", none=True)) is None
    assert kind.find_mistake(ask("a", "", impossible=True), reply("Paris")).expected == "no answer"


def test_nothing_at_all():
    assert math.isnan(score_answers({}, {})["f1"])
    assert math.isnan(score_answers_or_none({}, {})["f1"])


def test_real_questions(data):
    """The gold answers themselves score 1, and saying nothing scores the share that cannot be answered."""
    with (data / "squad" / "dev-v2.0.json").open(encoding="utf-8") as file:
        articles = json.load(file)["data"]
    gold = {
        question["id"]: [answer["text"] for answer in question["answers"]]
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }
    first = {id: answers[0] if answers else "" for id, answers in gold.items()}
    assert score_answers_or_none(gold, first)["f1"] == 1.0
    nothing = score_answers_or_none(gold, dict.fromkeys(gold, ""))
    assert nothing["exact_match"] == nothing["f1"] == 5945 / 11873
    assert nothing["has_answer_f1"] == 0.0
