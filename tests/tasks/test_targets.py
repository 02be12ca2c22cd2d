"""What is to be learned of an example: labels, numbers, tags and choices, as files have them."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from malmoi import MalmoiError
from malmoi.tasks.examples import Choice
from malmoi.tasks.reading import find_labels, require_known_labels, require_trainable


def test_several_labels(read, refusal):
    rows = '{"text": "a", "label": ["x", "y", "x"]}\n{"text": "b", "label": []}\n{"text": "c", "label": "y"}\n'
    assert [one.labels for one in read("classify", "a.jsonl", rows, multi_label=True)] == [("x", "y"), (), ("y",)]
    assert "line 1, field 'label': one label is wanted here, not a list; give --multi-label" in refusal(
        "classify", "a.jsonl", rows
    )
    table = "text,label\na,x|y\nb,\n"
    examples = read("classify", "a.csv", table, multi_label=True, label_separator="|")
    assert [one.labels for one in examples] == [("x", "y"), ()]
    columns = "text,욕설,혐오\na,1,0\nb,0,0\nc,1,1\n"
    examples = read("classify", "a.csv", columns, multi_label=True, label="욕설,혐오")
    assert [one.labels for one in examples] == [("욕설",), (), ("욕설", "혐오")]
    assert find_labels(examples) == ["욕설", "혐오"]
    sentence = refusal("classify", "a.csv", columns.replace("1,1", "1,2"), multi_label=True, label="욕설,혐오")
    assert "line 4, column '혐오': 0 or 1 is wanted here, not '2'" in sentence


def test_targets_have_to_be_numbers(read, refusal):
    assert [one.score for one in read("regress", "a.csv", "text,score\na,3\nb,-1e-2\n")] == [3.0, -0.01]
    for value in ("nan", "inf", "-inf"):
        sentence = refusal("regress", "a.csv", f"text,score\na,3\nb,{value}\n")
        assert f"line 3, column 'score': {value} is no target" in sentence
    for value in ("good", "", '"3,5"'):
        assert "line 2, column 'score': " in refusal("regress", "a.csv", f"text,score\na,{value}\n")
    assert "a number is wanted here, not true or false" in refusal("regress", "a.jsonl", '{"text": "a", "score": true}')
    assert "a number is wanted here, not null" in refusal("regress", "a.jsonl", '{"text": "a", "score": null}')


def test_labels_are_not_looked_for_in_a_prediction(read):
    [example] = read("classify", "a.csv", "text,label\na,\n", labelled=False)
    assert example.labels is None
    assert read("regress", "a.csv", "text\na\n", labelled=False)[0].score is None
    assert read("tag", "a.jsonl", '{"tokens": ["a", "b"]}', labelled=False)[0].tags is None
    assert read("choose", "a.csv", "prompt,choice1,choice2\np,a,b\n", labelled=False)[0].answer is None


def test_known_labels(read):
    train = read("classify", "train.csv", "text,label\n" + "".join(f"t,{number}\n" for number in (10, 9, 2)))
    assert find_labels(train) == ["2", "9", "10"]
    dev = read("classify", "dev.csv", "text,label\nt,2\nt,11\n")
    require_known_labels(dev[:1], ["2", "9", "10"])
    with pytest.raises(MalmoiError, match=r"dev.csv, line 3: the label '11' is not one of those .* 2, 9, 10; "):
        require_known_labels(dev, ["2", "9", "10"])


def test_what_cannot_be_learnt(read):
    one_class = read("classify", "a.csv", "text,label\na,x\nb,x\n")
    for refuse in (find_labels, require_trainable):
        with pytest.raises(MalmoiError, match=r"a.csv, line 2: every example has the label 'x'; at least two"):
            refuse(one_class)
    with pytest.raises(MalmoiError, match=r"a.csv, line 2: this is the only example"):
        require_trainable(one_class[:1])
    with pytest.raises(MalmoiError, match=r"every example has the score 1.0"):
        require_trainable(read("regress", "a.csv", "text,score\na,1\nb,1\n"))
    require_trainable(read("embed", "a.csv", "anchor,positive\na,b\nc,d\n"))


# Other tasks in tables


def test_tags_in_records(read, refusal, make_parquet):
    words, tags = ["나는", "서울에"], ["O", "B-LC"]
    expected = [(tuple(words), tuple(tags))]
    table = make_parquet({"tokens": [words], "ner_tags": [tags]})
    for name, content in (
        ("a.jsonl", json.dumps({"words": words, "tags": tags})),
        ("a.csv", "words,tags\n나는 서울에,O B-LC\n"),
        ("a.parquet", table),
    ):
        examples = read("tag", name, content)
        assert [(example.words, example.tags) for example in examples] == expected
    numbers = read("tag", "a.parquet", make_parquet({"tokens": [words], "ner_tags": [[0, 5]]}))
    assert numbers[0].tags == ("0", "5")
    sentence = refusal("tag", "a.jsonl", '{"words": ["a", "b"], "tags": ["O"]}')
    assert "line 1, field 'tags': 1 tags for 2 words" in sentence
    for bad in ("", None):
        sentence = refusal("tag", "a.jsonl", json.dumps({"words": ["a", "b"], "tags": ["O", bad]}))
        assert "line 1, field 'tags': number 2 of the list is empty" in sentence


def test_numbers_get_the_names_that_the_file_has_for_them(read, tmp_path):
    """As the library `datasets` writes them, in its older and its newer way."""
    names = {"names": ["O", "B-LC"], "_type": "ClassLabel"}
    columns = {"words": [["나는", "서울에"], ["네"]], "tags": [[0, 1], [0]], "label": [1, -1]}

    def write(features):
        table = pyarrow.table(columns).replace_schema_metadata(
            {"huggingface": features if isinstance(features, str) else json.dumps({"info": {"features": features}})}
        )
        pyarrow.parquet.write_table(table, tmp_path / "written")
        return (tmp_path / "written").read_bytes()

    for lists in ({"feature": names, "_type": "Sequence"}, {"feature": names, "_type": "List"}, [names]):
        first, second = read("tag", "a.parquet", write({"words": {}, "tags": lists, "label": names}))
        assert (first.tags, second.tags) == (("O", "B-LC"), ("O",))
    columns["text"] = ["재미있다", "지루하다"]
    labels = [one.labels for one in read("classify", "a.parquet", write({"label": names}))]
    assert labels == [("B-LC",), ("-1",)]
    assert [one.score for one in read("regress", "a.parquet", write({"label": names}))] == [1.0, -1.0]
    for strange in ("no JSON", "[]", {"label": {"names": 3, "_type": "ClassLabel"}}, {"label": None}, ["label"]):
        assert read("classify", "a.parquet", write(strange))[0].labels == ("1",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "premise,choice1,choice2,label\n비가 왔다,우산을 썼다,잤다,1\n"),
        ("a.tsv", "ctx\tending_0\tending_1\tanswer\n비가 왔다\t우산을 썼다\t잤다\tB\n"),
        ("a.jsonl", '{"prompt": "비가 왔다", "choices": ["우산을 썼다", "잤다"], "label": "잤다"}'),
        ("a.jsonl", '{"question": "비가 왔다", "choices": {"text": ["우산을 썼다", "잤다"]}, "answerKey": "B"}'),
    ],
)
def test_choices(read, name, content):
    [example] = read("choose", name, content)
    assert example == Choice("비가 왔다", ("우산을 썼다", "잤다"), 1, example.place)


def test_choices_by_name_and_number(read, refusal):
    content = "p,x,y,z,right\nq,a,b,c,2\n"
    options = {"text": "p", "choices": "x,y,z", "label": "right"}
    assert read("choose", "a.csv", content, **options)[0].choices == ("a", "b", "c")
    many = "prompt," + ",".join(f"option{number}" for number in range(1, 12)) + ",label\nq," + ",".join("abcdefghijk")
    assert "".join(read("choose", "a.csv", many + ",10\n")[0].choices) == "abcdefghijk"
    assert "column 'right': '3' names none of the 3 choices; give a number from 0 to 2" in refusal(
        "choose", "a.csv", content.replace("c,2", "c,3"), **options
    )
    assert "a list of texts is wanted" in refusal("choose", "a.jsonl", '{"prompt": "a", "choices": "b", "label": 0}')
    assert "at least two choices" in refusal("choose", "a.jsonl", '{"prompt": "a", "choices": ["b"], "label": 0}')
    assert "column 'y': the text is empty" in refusal("choose", "a.csv", content.replace(",b,", ",,"), **options)


# Mistakes
