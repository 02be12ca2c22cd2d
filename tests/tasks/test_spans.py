"""Where an answer is, against every span tried one by one; and what is learned of answers that are no whole tokens."""

import numpy as np
import pytest
import toys
from hypothesis import given
from hypothesis import strategies as st

from malmoi import MalmoiError
from malmoi.tasks.answering import Answering
from malmoi.tasks.examples import Answer, Question
from malmoi.tasks.spans import Window, find_answer, mark_answer, shrink_answer

CONTEXT = "abcdefghijklmnopqrstuvwxyz"
# Of ten values, so that many spans are equally good; tokens of the context or (None) of something else.
logits = st.integers(-5, 5).map(float)
tokens = st.tuples(logits, logits, st.sampled_from([True, True, True, False]))


def make_window(parts, first):
    """A window whose tokens stand for a letter each, from some letter on."""
    letter, places = first, []
    for _, _, is_text in parts:
        places.append((letter, letter + 1) if is_text and letter < 26 else (-1, -1))
        letter += is_text
    return Window(
        np.array([(start, end) for start, end, _ in parts], np.float32), np.array(places, np.int32).reshape(-1, 2)
    )


def search(windows, longest):
    """The score of every span of at most so many tokens."""
    scores = {}
    for window in windows:
        for first in range(len(window.places)):
            for last in range(first, min(first + longest, len(window.places))):
                if min(window.places[first, 0], window.places[last, 0]) >= 0:
                    span = int(window.places[first, 0]), int(window.places[last, 1])
                    score = float(window.logits[first, 0] + window.logits[last, 1])
                    scores[span] = max(score, scores.get(span, score))
    return scores


@given(
    st.lists(st.tuples(st.lists(tokens, min_size=1, max_size=40), st.integers(0, 9)), min_size=1, max_size=3),
    st.integers(1, 35),
    st.sampled_from([None, -3.0, 0.0, 2.0]),
)
def test_the_best_span_is_the_best_of_all(given, longest, threshold):
    windows = [make_window(*one) for one in given]
    scores = search(windows, longest)
    reply = find_answer(CONTEXT, windows, longest, threshold)
    best = sorted(scores.values(), reverse=True)[:5]
    assert [scores[one.start, one.end] for one in reply.candidates] == best
    assert len({(one.start, one.end) for one in reply.candidates}) == len(best)
    nothing = min(float(window.logits[0].sum()) for window in windows)
    if scores:
        assert reply.margin == nothing - best[0]
        is_none = threshold is not None and nothing - best[0] > threshold
        assert reply.answer == (None if is_none else reply.candidates[0])


def test_there_always_is_an_answer():
    """The likeliest beginnings all come after the likeliest ends."""
    size = 60
    ramp = np.arange(size, dtype=np.float32)
    places = np.array([(-1, -1), *((place, place + 1) for place in range(size - 1))], np.int32)
    reply = find_answer("x" * size, [Window(np.stack([ramp, -ramp], 1), places)], 30, None)
    assert reply.answer is not None and len(reply.candidates) == 5 and reply.no_answer_score == 0


def make_kind(seq_len=32):
    return Answering(toys.make_bundle().tokenizer, None, seq_len)


def ask(context, answer, start, place="a.jsonl, line 7"):
    return Question("q9", "어디에서 그랬나요?", context, (Answer(answer, start),), False, place)


@pytest.mark.parametrize("edge", [" ", "  ", "\u200b", "\n", " \u200b"])
def test_answers_are_shrunk_to_their_tokens(edge):
    context = f"학생이{edge}서울{edge}거리에서 노래를"
    start = context.index("서울")
    plain, shrunk = ask(context, "서울", start), ask(context, f"{edge}서울{edge}", start - len(edge))
    expected, items = make_kind().encode([plain]), make_kind().encode([plain, shrunk])
    assert (expected.targets[0] > 0).all()
    assert items.targets.tolist() == [expected.targets[0].tolist()] * 2
    assert (expected.shrunk, items.shrunk) == (0, 1)


def test_an_answer_without_a_token_is_refused():
    with pytest.raises(MalmoiError, match=r"a.jsonl, line 7, question q9: the answer '\\u200b' holds nothing"):
        make_kind().encode([ask("학생이 \u200b서울 거리에서", "\u200b", 4)])


def test_only_a_window_that_holds_the_whole_answer_learns_it():
    places = np.array([(-1, -1), (0, 2), (3, 5), (6, 9), (-1, -1)], np.int32)
    assert shrink_answer(places, 2, 6) == (3, 5) and shrink_answer(places, 2, 3) is None
    assert shrink_answer(places, 1, 7) == (1, 7)  # within a token: as it is
    assert mark_answer(places[:3], 3, 9) == (0, 0) and mark_answer(places, 3, 9) == (2, 3)


def test_shrunk_answers_are_said_before_training(tmp_path):
    told = []
    examples = [ask("학생이 서울 거리에서 노래를", " 서울 ", 3)] * 4
    toys.prepare_finetuning(
        toys.TaskData("answer", examples),
        toys.make_bundle(),
        toys.FinetuningOptions(),
        toys.ALONE,
        model_name="toy",
        tell=told.append,
    )
    assert any(one.startswith("4 answers begin or end in what is no token") for one in told)


def test_a_block_at_a_time_gives_the_same_items(monkeypatch):
    """However many examples there are: those of a whole epoch never lie in the tokenizer's own form at once."""
    import malmoi.tasks.kind as kind_module

    monkeypatch.setattr(kind_module, "_BLOCK", 7)
    for name in ("answer", "classify", "choose", "tag", "embed"):
        prepared = toys.prepare(name, count=20)
        examples = toys.TASKS[name][0](count=40)
        whole, joined = prepared.kind.encode(examples), prepared.kind.encode_all(examples)
        for field, expected in vars(whole).items():
            found = getattr(joined, field)
            if expected is None or field == "shrunk":
                assert found == expected
            else:
                assert found.dtype == expected.dtype and np.array_equal(found, expected), field


def test_the_longest_answer_and_tokens_of_the_same_characters():
    places = np.array([(-1, -1), (0, 1), (0, 1), *((place, place + 1) for place in range(1, 30))], np.int32)
    logits = np.zeros((len(places), 2), np.float32)
    logits[1:3, 0], logits[-1, 1] = 9.0, 9.0
    whole = find_answer("x" * 30, [Window(logits, places)], 30, None)
    assert (whole.answer.start, whole.answer.end) == (0, 30)  # thirty tokens from the second token of the first letter
    assert len({(one.start, one.end) for one in whole.candidates}) == 5
    shorter = find_answer("x" * 30, [Window(logits, places)], 29, None)
    assert (shorter.answer.start, shorter.answer.end) != (0, 30)
