"""Words and tags a line, and questions about a context, in SQuAD's form and in records."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi import MalmoiError
from malmoi.tasks.answers import find_nearest, repair_answers
from malmoi.tasks.examples import Answer, Question

# Words and tags


def of(examples):
    return [(example.words, example.tags) for example in examples]


@pytest.mark.parametrize("gap", ["\t", " "])
@pytest.mark.parametrize("name", ["a.conll", "a.tsv", "a.txt"])
def test_conll(read, name, gap):
    content = "-DOCSTART- O\n\n\n나는 O\n서울에 B-LC\n\n# O\n1 O\n \n\n간다 O".replace(" ", gap)
    examples = read("tag", name, content)
    assert of(examples) == [
        (("나는", "서울에"), ("O", "B-LC")),
        (("#", "1"), ("O", "O")),
        (("간다",), ("O",)),
    ]
    assert [example.place.rpartition("line ")[2] for example in examples] == ["4", "7", "11"]


def test_columns_between_word_and_tag(read, refusal):
    content = "U.N. NNP I-NP I-ORG\nofficial NN I-NP O\n"
    assert of(read("tag", "a.conll", content)) == [(("U.N.", "official"), ("I-ORG", "O"))]
    assert read("tag", "a.conll", content, label="1")[0].tags == ("NNP", "NN")
    assert "line 1: there is no column 4 for the tag" in refusal("tag", "a.conll", content, label="4")
    with pytest.raises(MalmoiError, match="--label ner: a file of words and tags has no header"):
        read("tag", "a.conll", content, label="ner")


def test_a_character_a_line(read):
    content = (
        "## 컬럼명 : CHAR\tNE_TAG\n## klue-ner-v1_dev_00000-wikitree\t<서울:LC>로 간다.\n"
        "서\tB-LC\n울\tI-LC\n로\tO\n \tO\n간\tO\n다\tO\n.\tO\n\n## 다음\t#\n#\tO\n"
    )
    first, second = read("tag", "klue.tsv", content)
    assert first.words == tuple("서울로 간다.") and first.tags[:4] == ("B-LC", "I-LC", "O", "O")
    assert first.lay_out()[0] == "서울로 간다."
    assert second.words == ("#",)


def test_words_alone_are_enough_to_predict_from(read):
    assert of(read("tag", "a.txt", "나는\n간다\n\n네\n", labelled=False)) == [(("나는", "간다"), None), (("네",), None)]
    assert of(read("tag", "a.txt", "나는\tO\n간다\tO\n", labelled=False)) == [(("나는", "간다"), None)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a O\nb\n", ["line 2", "1 fields, but 2 in the line the sentence begins with"]),
        ("a\nb\n", ["line 1", "a word and its tag are wanted"]),
        ("a\tO\nb\t\n", ["line 2", "the tag is empty"]),
        ("a\tO\n\tO\n", ["line 2", "the word is empty"]),
        ("\n\n", ["no examples"]),
    ],
)
def test_mistakes_in_words_and_tags(refusal, content, words):
    sentence = refusal("tag", "a.conll", content)
    for word in words:
        assert word in sentence, sentence


# Questions


def squad(questions, context="서울은 한국의 수도이다. 서울은 크다."):
    return json.dumps(
        {"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]}
    )


def asked(**parts):
    return {"id": "q1", "question": "수도는?", "answers": [{"text": "서울", "answer_start": 0}], **parts}


@pytest.mark.parametrize("indent", [None, 2])
def test_squad(read, indent):
    content = squad([asked(), asked(id="q2", answers=[], is_impossible=True)])
    one, two = read("answer", "dev.json", json.dumps(json.loads(content), indent=indent))
    assert (one.id, one.question, one.answers, one.impossible) == ("q1", "수도는?", (Answer("서울", 0),), False)
    assert (two.answers, two.impossible) == ((), True)
    assert one.place.endswith("dev.json, article 1, paragraph 1, question q1")
    unlabelled = read("answer", "dev.json", content, labelled=False)
    assert [question.answers for question in unlabelled] == [None, None]


def test_wrong_offsets_are_mended(read):
    answers = [
        {"text": "서울", "answer_start": 0},
        {"text": "서울", "answer_start": 11},
        {"text": " 크다 ", "answer_start": 3},
        {"text": "수도", "answer_start": 900},
        {"text": "한국"},
    ]
    [question] = read("answer", "dev.json", squad([asked(answers=answers)]))
    assert question.answers == (
        Answer("서울", 0),
        Answer("서울", 14),
        Answer("크다", 18),
        Answer("수도", 8),
        Answer("한국", 4),
    )
    # The last one had no offset that could have been wrong.
    assert read.notes.repaired_answers == 3


@given(st.text("ab", max_size=30), st.text("ab", min_size=1, max_size=3), st.integers(-3, 35))
def test_the_nearest_occurrence_is_found(context, text, start):
    places = [place for place in range(len(context)) if context.startswith(text, place)]
    nearest = min(places, key=lambda place: (abs(place - start), place), default=None)
    assert find_nearest(context, text, start) == nearest
    question = Question("q", "?", context, (Answer(text, start),), False, "here")
    if nearest is None:
        with pytest.raises(MalmoiError, match=r"here: the answer '[ab]+' is not in its context"):
            repair_answers(question)
    else:
        assert repair_answers(question)[0].answers == (Answer(text, nearest),)


@pytest.mark.parametrize(
    "record",
    [
        {"answers": {"text": ["서울"], "answer_start": [0]}},
        {"answers": [{"text": "서울", "answer_start": 0}], "is_impossible": False},
        {"answer": "서울", "answer_start": 0},
        {"answer": "서울"},
    ],
)
def test_questions_in_records(read, record):
    record = {"id": 7, "context": "서울은 수도이다.", "question": "수도는?", **record}
    for name in ("a.jsonl", "a.json"):
        [question] = read("answer", name, json.dumps(record))
        assert (question.id, question.answers, question.impossible) == ("7", (Answer("서울", 0),), False)
    record.pop("is_impossible", None)
    [question] = read("answer", "a.json", json.dumps([{**record, "answers": {"text": [], "answer_start": []}}]))
    assert question.impossible


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            squad([asked(answers=[{"text": "부산", "answer_start": 0}])]),
            ["question q1", "'부산' is not in its context"],
        ),
        (squad([asked(answers=[], is_impossible=False)]), ["question q1", "no answer, yet is_impossible is false"]),
        (squad([asked(is_impossible=True)]), ["question q1", "is_impossible is true, yet there is an answer"]),
        (squad([asked(answers=[{"text": "서울", "answer_start": "x"}])]), ["question q1", "answer_start 'x'"]),
        (squad([asked(question=" ")]), ["question q1", "the question is empty", "--skip-empty"]),
        (squad([asked()], context=5), ["article 1, paragraph 1", "'context' should hold text but holds a number"]),
        (squad([{"question": "a"}]), ["paragraph 1", "no id"]),
        ('{\n"data": [{"paragraphs": [}]}', ["line 1", "not JSON", "line 2, column"]),
        ('{"data": 3}', ["'data' should hold a list"]),
        ('{"articles": [],\n"data": {}}', ["'data' should hold a list but holds an object"]),
        ('{"version": "1.1",\n"articles": []}', ["no 'data' among version, articles"]),
    ],
)
def test_mistakes_in_questions(refusal, content, words):
    sentence = refusal("answer", "dev.json", content)
    for word in words:
        assert word in sentence, sentence
