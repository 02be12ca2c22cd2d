"""Fine-tuned models in use: answers in order, and offsets that are those of the text as it was written."""

import pytest
import toys
from toys import ALONE, prepare, run

import malmoi
from malmoi.tasks.answering import take_threshold
from malmoi.tasks.examples import Asked, Question, Tagged
from malmoi.tasks.inference import predict, predict_blocks
from malmoi.tasks.kinds import find_task, open_kind


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model for each of some tasks, made when it is asked for."""
    made = {}

    def make(name, **options):
        if name not in made:
            out = tmp_path_factory.mktemp("use") / "run"
            run(prepare(name, **options), out)
            made[name] = malmoi.load(out / "model")
        return made[name]

    return make


def test_classify(trained):
    model = trained("classify")
    texts = [one.text for one in toys.sentiment(40, seed=5)]
    answers = model.classify(texts)
    right = [answer.label == one.labels[0] for answer, one in zip(answers, toys.sentiment(40, seed=5), strict=True)]
    assert sum(right) >= 38
    assert all(abs(sum(answer.scores.values()) - 1) < 1e-5 and answer.labels == (answer.label,) for answer in answers)
    # One at a time or all at once, each text gets its own answer.
    assert [model.classify([text])[0].label for text in texts[:8]] == [answer.label for answer in answers[:8]]
    assert model.classify([]) == []
    # A text alone gets an answer alone.
    assert model.classify(texts[0]).label == answers[0].label
    assert [one.label for one in model.classify(text for text in texts[:3])] == [one.label for one in answers[:3]]
    assert find_task(model.head) == "classify"


def test_a_stream_keeps_its_order(trained, monkeypatch):
    import malmoi.tasks.inference as inference

    monkeypatch.setattr(inference, "_EXAMPLES_AT_ONCE", 7)
    monkeypatch.setattr(inference, "_TOKENS_AT_ONCE", 40)
    model = trained("classify")
    kind = open_kind(model, ("classify",))
    examples = toys.sentiment(30, seed=5)
    seen = []
    rows = [Asked(number, one, {}) for number, one in enumerate(examples)]
    rows.insert(9, Asked("empty", None, {}))
    for block in predict_blocks(kind, model.model, iter(rows), ALONE.device):
        for row, answer in block:
            seen.append(row)
            assert (answer is None) == (row.example is None)
            assert answer is None or answer.label == model.classify(row.example.text).label
    assert seen == rows


def test_tag_finds_the_characters(trained):
    text = "고양이가  부산 거리에서 영화를\t제주도 거리에서 노래를 들었다."
    [found] = trained("tag").tag([text])
    places = [(one.label, one.text, one.start, one.end) for one in found.entities]
    assert places == [("곳", "부산 거리에서", 6, 13), ("곳", "제주도 거리에서", 18, 26)]
    assert all(text[start:end] == word for word, (start, end) in zip(found.words, found.spans, strict=True))


def test_tag_by_characters(trained):
    model = trained("tag characters")
    assert model.head.settings["words"] == "characters"
    text = "고양이가 부산 거리에서 영화를 보았다."
    [found] = model.tag([text])
    assert [(one.text, one.start, one.end) for one in found.entities] == [("부산 거리에서", 5, 12)]
    assert len(found.tags) == len(text)


def test_long_texts_are_tagged_to_their_end(trained):
    model = trained("tag")
    words = ["학생이", "서울", "거리에서", "사진을"] * 30
    kind = open_kind(model, ("tag",), 16)
    items = kind.encode([Tagged(tuple(words), None, "")])
    assert len(items) > 5 and items.lengths.max() <= 16
    assert sorted(items.notes[items.notes >= 0].tolist()) == list(range(len(words)))
    [found] = predict(kind, model.model, [Tagged(tuple(words), None, "")], ALONE.device)
    assert len(found.tags) == len(words) and found.tags.count("B-곳") > 20


def test_answer_finds_the_characters(trained):
    context = "할머니가 노래를 친구가 사진을 제주도 편지를 들었다."
    reply = trained("answer").answer("어디에서 그랬나요?", context)
    assert reply.answer.text == "제주도" and context[reply.answer.start : reply.answer.end] == "제주도"
    assert reply.candidates[0] == reply.answer and reply.no_answer_score == 0.0


def test_no_answer(trained):
    model = trained("answer or not")
    assert model.answer("어디에서 그랬나요?", "할머니가 노래를 친구가 사진을 편지를 들었다.").answer is None
    assert model.answer("어디에서 그랬나요?", "할머니가 노래를 한강 편지를 들었다.").answer.text == "한강"


def test_another_threshold(trained):
    model = trained("answer or not")
    question, context = "어디에서 그랬나요?", "할머니가 노래를 한강 편지를 들었다."
    margin = model.answer(question, context).margin
    assert model.answer(question, context, threshold=margin).answer.text == "한강"
    assert model.answer(question, context, threshold=margin - 1).answer is None
    assert model.answer(question, context).answer is not None  # as trained again
    with pytest.raises(malmoi.MalmoiError, match="--threshold nan"):
        model.answer(question, context, threshold=float("nan"))
    with pytest.raises(malmoi.MalmoiError, match="for a model that answers questions"):
        take_threshold(trained("classify").head, 1.0)


def test_windows_hold_every_answer(trained):
    """Far beyond one sequence: each context token is in a window, and the answer is found in one of them."""
    model = trained("answer")
    example = toys.questions(1, seed=2, repeat=30)[0]
    kind = open_kind(model, ("answer",), 32)
    items = kind.encode([example])
    assert len(items) > 3 and items.lengths.max() <= 32
    marked = [tuple(span) for span in items.targets if tuple(span) != (0, 0)]
    assert marked
    for item, (first, last) in enumerate(items.targets):
        if first:
            places = items.notes[items.tokens(item)]
            assert example.context[places[first, 0] : places[last, 1]] == example.answers[0].text
    covered = {place for start, end in items.notes.tolist() if start >= 0 for place in range(start, end)}
    assert covered == {place for place, letter in enumerate(example.context) if not letter.isspace()}
    question = Question("", "어디에서 그랬나요? " * 40, example.context, None, False, "")
    assert kind.encode([question]).lengths.max() <= 32


def test_choose(trained):
    chosen = trained("choose").choose("할머니가", ["지루한 노래를", "훌륭한 영화를", "끔찍한 편지를"])
    assert chosen.index == 1 and chosen.choice == "훌륭한 영화를" and abs(sum(chosen.scores) - 1) < 1e-5
    with pytest.raises(malmoi.MalmoiError, match="nothing to choose"):
        trained("choose").choose("할머니가", [])


def test_similar(trained):
    model = trained("embed", count=256)
    near = model.similar("학생이 서울 영화를", "영화를 서울 학생이 보았다.").score
    far = model.similar("학생이 서울 영화를", "편지를 한강 친구가 보았다.").score
    assert near > far + 0.2
    assert model.head is None and model.absent == {"word_head", "next_sentence_head"}


def test_score(trained):
    model = trained("regress")
    many, few = "학생이 훌륭한 훌륭한 훌륭한 보았다.", "학생이 지루한 지루한 지루한 보았다."
    high, low = model.score([many, few])
    assert high > low and model.score(many) == pytest.approx(high, abs=1e-4)
    assert len(model.score([(many, few)])) == 1
    # Such a model scores pairs too, a text against each of several.
    assert len(model.similar(many, [few, many])) == 2 and isinstance(model.similar(many, few).score, float)


def test_what_is_cut_is_said(trained):
    with pytest.warns(UserWarning, match="1 of 2 texts were longer than 48 tokens and cut"):
        trained("classify").classify(["학생이", "학생이 서울 영화를 보았다. " * 30])


@pytest.mark.parametrize(
    ("name", "method", "given", "says"),
    [
        ("classify", "classify", (None,), "is None"),
        ("classify", "classify", ([None],), "text 0 is None"),
        ("classify", "classify", ([("가", "나", "다")],), "a pair is of two texts; this has 3"),
        ("regress", "score", ([1.5],), "text 0 is of type float"),
        ("tag", "tag", (["a\ud800"],), "half a surrogate pair"),
        ("tag", "tag", ([("가", "나")],), "text 0 is of type tuple"),
        ("answer", "answer", (["어디?"], "서울"), "the question is of type list"),
        ("answer", "answer", ("어디?", None), "the context is None"),
        ("choose", "choose", ("할머니가", "노래를"), "a list of choices is needed"),
        ("choose", "choose", ("할머니가", ["노래를", 3]), "choice 1 is of type int"),
        ("choose", "choose", (None, ["노래를"]), "the prompt is None"),
        ("classify", "similar", (["가"], "나"), "the first text is of type list"),
        ("classify", "similar", ("가", None), "is None"),
        ("classify", "embed", ([1],), "text 0 is of type int"),
        ("classify", "words", ([["가", None]],), "text 0: word 1 is None"),
        ("classify", "hidden_states", (3,), "a list of texts is needed"),
        ("embed", "fill", (["책을 [MASK]"],), "the text is of type list"),
    ],
)
def test_one_check_at_the_door(trained, name, method, given, says):
    model = malmoi.Pretrained(**vars(toys.make_bundle())) if method == "fill" else trained(name)
    with pytest.raises(malmoi.MalmoiError, match=says):
        getattr(model, method)(*given)


def test_nothing_to_read_is_still_answered(trained):
    assert trained("tag").tag("").words == ()
    reply = trained("answer").answer("", "")
    assert reply.answer is None or reply.answer.text == ""
    assert trained("choose").choose("", ["", "노래를"]).choice in ("", "노래를")
    assert set(trained("classify").classify("").scores) == {"좋음", "나쁨"}


def test_every_record_has_the_fields_of_its_kind(trained):
    examples = {"classify": toys.sentiment, "regress": toys.scores, "tag": toys.tags, "answer": toys.questions}
    for name, make in {**examples, "choose": toys.choices}.items():
        model = trained(name)
        kind = open_kind(model, (name,))
        example = make(count=1)[0]
        [answer] = predict(kind, model.model, [example], ALONE.device)
        assert tuple(kind.to_record(example, answer)) == kind.fields, name


def test_a_model_for_something_else_says_so(trained):
    with pytest.raises(malmoi.MalmoiError, match=r"no head for tag \(one for classify\).*malmoi finetune tag"):
        trained("classify").tag(["학생이"])
    with pytest.raises(malmoi.MalmoiError, match="no head for a task"):
        malmoi.Pretrained(**vars(toys.make_bundle())).classify(["학생이"])
