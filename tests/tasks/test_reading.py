"""Files of records → examples: every format, the columns found, and each mistake in a sentence."""

import gzip
import json

import pyarrow
import pytest

from malmoi import MalmoiError
from malmoi.tasks.examples import Classified, Scored, Tagged
from malmoi.tasks.reading import Columns, find_labels, read_examples, read_rows

TABLE = 'id,document,label\n1,재미있다,1\n2,"지루하다, 정말",0\n'
ROWS = [("재미있다", ("1",)), ("지루하다, 정말", ("0",))]


def of(examples):
    return [(example.text, example.labels) for example in examples]


# Formats and encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949", "utf-16", "utf-16-le"])
def test_encodings(read, encoding):
    examples = read("classify", "train.csv", TABLE.encode(encoding))
    assert of(examples) == ROWS
    assert examples[1].place.endswith("train.csv, line 3") and examples[1].pair is None
    assert read.notes.files[0].encoding in (encoding, "utf-8", "utf-16-le")


def test_compressed(read):
    assert of(read("classify", "train.csv.gz", gzip.compress(TABLE.encode()))) == ROWS
    zstd = pyarrow.compress(TABLE.encode(), "zstd", asbytes=True)
    assert of(read("classify", "train.csv.zst", zstd)) == ROWS


def test_the_formats_mean_the_same(read, make_parquet):
    tsv = "id\tdocument\tlabel\n1\t재미있다\t1\n2\t지루하다, 정말\t0\n"
    objects = [{"document": text, "label": int(labels[0])} for text, labels in ROWS]
    lines = "".join(json.dumps(one) + "\n" for one in objects)
    for name in ("a.tsv", "a.txt", "ratings"):
        assert of(read("classify", name, tsv)) == ROWS
    for name in ("a.jsonl", "a.json", "a.txt"):
        assert of(read("classify", name, lines)) == ROWS
    assert of(read("classify", "a.json", json.dumps(objects, indent=4, ensure_ascii=False))) == ROWS
    # pandas makes 1.0 of a label as soon as another one is missing.
    for labels in ([1, 0], [1.0, 0.0], ["1", "0"]):
        table = make_parquet({"document": [text for text, _ in ROWS], "label": labels})
        examples = read("classify", "a.parquet", table)
        assert of(examples) == ROWS
        assert examples[0].place.endswith("a.parquet, row 1")


def test_without_header(read, refusal):
    content = "neutral\tA man eats.\tHe is hungry.\n-\tA dog.\tA cat.\n"
    columns = {"label": "0", "text": "1", "pair": "2", "no_header": True}
    examples = read("pair", "a.tsv", content, **columns)
    assert (examples[0].text, examples[0].pair, examples[0].labels) == ("A man eats.", "He is hungry.", ("neutral",))
    assert [example.labels for example in read("pair", "a.tsv", content, **columns, skip_label="-")] == [("neutral",)]
    assert read.notes.skipped == 1
    assert "line 1: this line looks like data" in refusal("classify", "a.csv", "0.5,좋은 영화 였다 정말\n1,나쁘다\n")
    sentence = refusal("pair", "a.tsv", content * 2, text="1", pair="2", label="0")
    assert "this line looks like data" in sentence and "--no-header" in sentence
    sentence = refusal("pair", "a.tsv", content, no_header=True)
    assert "--text by its number with one of 0, 1, 2" in sentence
    assert "no column '7' among 0, 1, 2" in refusal("pair", "a.tsv", content, **{**columns, "text": "7"})


def test_a_text_a_line_is_enough_to_predict_from(read, refusal, tmp_path):
    content = "첫째 문장\n둘째 문장\n"
    assert [one.text for one in read("classify", "a.txt", content, labelled=False)] == ["첫째 문장", "둘째 문장"]
    assert [one.text for one in read("embed", "a.txt", content, labelled=False)] == ["첫째 문장", "둘째 문장"]
    assert [one.text for one in read("tag", "a.txt", content, labelled=False)] == ["첫째 문장", "둘째 문장"]
    assert "there are no columns in this text" in refusal("classify", "a.txt", content)
    assert "pair needs them" in refusal("pair", "a.txt", content, labelled=False)
    # An empty line is a row too, which has no answer.
    rows = list(read_rows("classify", [tmp_path / "a.txt"], Columns()))
    assert [(row.id, row.example is None) for row in rows] == [(0, False), (1, False)]
    (tmp_path / "b.txt").write_text("하나\n\n둘\n", "utf-8")
    rows = list(read_rows("classify", [tmp_path / "b.txt"], Columns(), ["text"]))
    assert [(row.id, row.example is None, row.kept["text"]) for row in rows] == [
        (0, False, "하나"),
        (1, True, ""),
        (2, False, "둘"),
    ]
    with pytest.raises(MalmoiError, match="no column 'label' to keep"):
        list(read_rows("classify", [tmp_path / "b.txt"], Columns(), ["label"]))


# Columns


@pytest.mark.parametrize(
    ("task", "names", "found"),
    [
        ("classify", ["id", "text", "title", "label"], ["text", "label"]),
        ("classify", ["index", "title", "topic_idx"], ["title", "topic_idx"]),
        ("classify", ["guid", "Sentence", "gold_label", "label2"], ["Sentence", "gold_label"]),
        ("pair", ["premise", "hypothesis", "gold_label"], ["premise", "hypothesis", "gold_label"]),
        ("pair", ["question", "sentence", "label"], ["question", "sentence", "label"]),
        ("regress", ["genre", "score", "sentence1", "sentence2"], ["sentence1", "sentence2", "score"]),
        ("regress", ["review", "rating"], ["review", "rating"]),
        ("embed", ["anchor", "positive"], ["anchor", "positive"]),
        ("embed", ["text1", "text2", "similarity"], ["text1", "text2", "similarity"]),
    ],
)
def test_columns_are_found(read, task, names, found):
    score = {"score": "0.5", "rating": "0.5", "similarity": "0.5"}
    rows = [[score.get(name, name.upper()) for name in names] for _ in range(2)]
    [example, _] = read(task, "a.csv", "\n".join(",".join(row) for row in [names, *rows]))
    said = [example.text] + ([example.pair] if example.pair is not None else [])
    said += list(example.labels) if isinstance(example, Classified) else [] if example.score is None else ["0.5"]
    assert said == [score.get(name, name.upper()) for name in found]


def test_columns_that_are_not_found(refusal):
    both = refusal("classify", "a.csv", "review,comment,label\na,b,c\n")
    assert "both 'review' and 'comment' may hold the text; give --text with one of review, comment, label" in both
    assert "line 1: which column holds the label? Give --label with one of text, size" in refusal(
        "classify", "a.csv", "text,size\na,b\n"
    )
    assert "which field holds the text" in refusal("classify", "a.jsonl", '{"body": "a", "label": 1}')
    sentence = refusal("classify", "a.csv", "text,lable\na,b\n", label="label")
    assert "no column 'label' among text, lable; did you mean lable? (--label)" in sentence
    assert "which column holds the second text" in refusal("pair", "a.csv", "text,label\na,b\n", text="text")
    assert "line 2: there is no field 'label' among text" in refusal(
        "classify", "a.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}\n'
    )


def test_fields_within_fields(read):
    content = '[{"sentence1": "하나", "sentence2": "둘", "labels": {"label": 4.9, "real-label": 4.857}}]'
    [example] = read("regress", "a.json", content)
    assert example == Scored("하나", "둘", 4.9, example.place)
    assert read("regress", "a.json", content, label="labels.real-label")[0].score == 4.857


# Labels and targets


def test_whole_numbers_are_one_label_however_they_are_written(read):
    tables = ["text,label\na,1\nb,0\n", "text,label\na,1.0\nb,0.0\n"]
    for table in tables:
        assert find_labels(read("classify", "a.csv", table)) == ["0", "1"]
    assert find_labels(read("classify", "a.csv", "text,label\na,1.5\nb,v1.0\n")) == ["1.5", "v1.0"]
    assert len(read("classify", "a.csv", "text,label\na,1.0\nb,-1.0\n", skip_label="-1")) == 1
    assert read("choose", "a.csv", "prompt,choice1,choice2,label\np,a,b,1.0\n")[0].answer == 1


def test_a_label_by_nearly_its_usual_name(refusal):
    assert "did you mean --label lable?" in refusal("classify", "a.csv", "text,lable\na,b\n")


def test_semicolons(read):
    content = 'text;label\n하나, 둘;1\n"셋; 넷";0\n'
    assert of(read("classify", "a.csv", content)) == [("하나, 둘", ("1",)), ("셋; 넷", ("0",))]
    assert of(read("classify", "a.txt", content)) == [("하나, 둘", ("1",)), ("셋; 넷", ("0",))]


def test_a_later_record_may_lack_what_is_optional(read):
    lines = '{"question": "q", "context": "a b", "answers": "a", "is_impossible": false}\n'
    examples = read("answer", "a.jsonl", lines + '{"question": "q", "context": "a b", "answers": "b"}\n')
    assert [example.answers[0].text for example in examples] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "text,label\na,1\n  ,0\n", ["line 3, column 'text'", "empty", "--skip-empty"]),
        ("a.jsonl", '{"text": null, "label": 1}', ["line 1, field 'text'", "empty (a null counts as empty)"]),
        ("a.jsonl", '{"text": NaN, "label": 1}', ["line 1, field 'text'", "empty (a null counts as empty)"]),
        ("a.csv", "text,text,label\na,b,1\n", ["line 1", "2 columns are called 'text'"]),
        ("a.jsonl", '{"text": 5, "label": 1}', ["line 1, field 'text'", "text here, not a number"]),
        ("a.csv", "text,label\na,1\nb,\n", ["line 3, column 'label'", "missing"]),
        ("a.csv", "text,label\na, b,1\n", ["line 2", "2 fields expected as in the header, 3 found", "quotes"]),
        ("a.tsv", "text\tlabel\na\n", ["line 2", "2 fields expected as in the header, 1 found"]),
        ("a.csv", 'text,label\n"a,1\n', ["line 2", "not proper CSV"]),
        ("a.csv", "text,label\n", ["no examples"]),
        ("a.csv", "", ["no text in this file"]),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": \n', ["line 2", "not JSON", "column"]),
        ("a.json", '[{"text": "a", "label": 1},\n {"text" "b"}]', ["line 2", "not JSON", "column"]),
        ("a.csv", b"\x89PNG\r\n\x1a\n", ["binary", "PNG"]),
    ],
)
def test_mistakes(refusal, name, content, words):
    sentence = refusal("classify", name, content)
    for word in words:
        assert word in sentence, sentence


def test_empty_texts_can_be_left_out(read):
    assert len(read("classify", "a.csv", "text,label\na,1\n ,0\nb,0\n", skip_empty=True)) == 2
    assert read.notes.empty == 1


def test_faults_can_be_noted(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\na,1\n,0\nb\nc,0\n")
    faults = []
    examples = list(read_examples("classify", [tmp_path / "a.csv"], Columns(), labelled=True, complain=faults.append))
    assert [example.text for example in examples] == ["a", "c"]
    assert ["line 3" in str(faults[0]), "line 4" in str(faults[1])] == [True, True]


def test_options_are_checked():
    with pytest.raises(MalmoiError, match="--format xml: choose one of auto, csv"):
        Columns(format="xml")
    with pytest.raises(MalmoiError, match="--label-separator"):
        Columns(label_separator="")


def test_a_task_and_a_format_that_do_not_fit(refusal):
    assert "--format conll is for the task tag" in refusal("classify", "a.txt", "a O\n", format="conll")
    assert "--format squad is for the task answer" in refusal("tag", "a.json", "{}", format="squad")


def test_layout_of_words():
    assert Tagged(("나는", "서울에"), None, "").lay_out() == ("나는 서울에", [(0, 2), (3, 6)])
    assert Tagged(("나", "는", " ", "갔", "다"), None, "").lay_out() == (
        "나는 갔다",
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)],
    )
