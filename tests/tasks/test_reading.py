"""Files of records → examples: every format, the columns found, and each mistake in a sentence."""

import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest

from malmoi import MalmoiError
from malmoi.tasks.examples import Choice, Classified, Scored, Tagged
from malmoi.tasks.reading import Columns, find_labels, read_examples, read_rows, require_known_labels, require_trainable

TABLE = 'id,document,label\n1,재미있다,1\n2,"지루하다, 정말",0\n'
ROWS = [("재미있다", ("1",)), ("지루하다, 정말", ("0",))]


def of(examples):
    return [(example.text, example.labels) for example in examples]


def parquet(tmp_path, columns: dict) -> bytes:
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "written")
    return (tmp_path / "written").read_bytes()


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


def test_the_formats_mean_the_same(read, tmp_path):
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
        table = parquet(tmp_path, {"document": [text for text, _ in ROWS], "label": labels})
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


def test_tags_in_records(read, refusal, tmp_path):
    words, tags = ["나는", "서울에"], ["O", "B-LC"]
    expected = [(tuple(words), tuple(tags))]
    table = parquet(tmp_path, {"tokens": [words], "ner_tags": [tags]})
    for name, content in (
        ("a.jsonl", json.dumps({"words": words, "tags": tags})),
        ("a.csv", "words,tags\n나는 서울에,O B-LC\n"),
        ("a.parquet", table),
    ):
        examples = read("tag", name, content)
        assert [(example.words, example.tags) for example in examples] == expected
    numbers = read("tag", "a.parquet", parquet(tmp_path, {"tokens": [words], "ner_tags": [[0, 5]]}))
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
