"""Files of records: JSON lines, CSV and TSV, Parquet."""

import gzip
import json

import pyarrow
import pyarrow.parquet
import pytest

from malmoi import MalmoiError
from malmoi.text.reading import Corpus

KOREAN = "첫째 줄이다.\n둘째 줄이다.\n"


# JSON lines


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.jsonl.gz"])
def test_json_lines(read, name):
    content = (
        '{"id": 1, "text": "하나\\r\\n둘"}\n\n{"id": 2, "text": " "}\n{"text": "😀\\ud83d\\ude00", "x": []}'.encode()
    )
    documents, report = read(name, gzip.compress(content) if name.endswith("gz") else content)
    assert documents == [(1, "하나\n둘"), (4, "😀😀")]
    assert (report.format, report.field, report.empty, report.rule) == ("jsonl", "text", 1, None)


@pytest.mark.parametrize("space", ["", "\n", " \n\t" * 400_000])
def test_json_array(read, space):
    items = [
        {"text": "하나", "inner": {"text": "둘"}},
        {"inner": {"text": "넷"}, "text": "셋 ]"},
        {"text": "", "inner": {"text": ""}},
    ]
    content = " [" + space + f"{space},{space}".join(json.dumps(item) for item in items) + space + "]" + space
    documents, report = read("a.json", content)
    lines = space.count("\n")
    assert documents == [(1 + lines, "하나"), (1 + 3 * lines, "셋 ]")]
    assert (report.format, report.field, report.empty) == ("jsonl", "text", 1)
    assert [text for _, text in read("a.json", content, field="inner.text")[0]] == ["둘", "넷"]


def test_lone_surrogates_are_replaced(read):
    [(_, text)], _ = read("a.jsonl", '{"text": "a\\ud800b\\udc00"}')
    assert text == "a\ufffdb\ufffd"


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({"title": "t", "text": "x", "content": "y"}, "text"),
        ({"title": "t", "content": "x", "body": "y"}, "content"),
        ({"title": "t", "sentence": "x"}, "sentence"),
        ({"id": 5, "review": "x"}, "review"),
        ({"text": 5, "review": "x"}, "review"),
    ],
)
def test_the_field_is_found(read, record, field):
    documents, report = read("a.jsonl", json.dumps(record))
    assert documents == [(1, "x")]
    assert report.field == field


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"text": "a"}\n{"text": "b}\n', ["line 2", "not JSON", "column"]),
        ('{"text": "a"}\n\n"b"\n', ["line 3", "object", "a string"]),
        ('{"text": "a"}\n{"txt": "b"}\n', ["line 2", "'text'", "among txt", "did you mean txt?"]),
        ('{"text": "a"}\n{"text": 5}\n', ["line 2", "'text'", "a number"]),
        ('{"sentence": "a", "document": "b"}\n', ["line 1", "both 'sentence' and 'document'", "give --text"]),
        ('{"title": "a"}\n{"title": "b", "text": "c"}\n', ["line 1", "no field 'text' among title"]),
        ('{"title": "a", "txet": "b"}\n', ["line 1", "did you mean --text txet?"]),
        ('{"text": "a\\u0000b"}', ["line 1", "NUL"]),
        ('{"title": "a", "body": "b"}\n', ["line 1", "--text", "title, body"]),
        ('{"text": ' + "[" * 200_000, ["line 1", "nested too deep"]),
        ('{"text": "a", "n": ' + "9" * 5000 + "}", ["line 1", "too long a number"]),
        ('[{"text": "' + "a" * 20_000_000 + '"}]', ["line 1", "longer than 16,777,216"]),
        ('[\n{"text": "a"}\n{"text": "b"}]', ["line 3", "a comma or ]"]),
        ('[\n{"text": "a"},\n{"text":\n "b}]', ["line 3", "not JSON", "line 4, column 2"]),
        ('[{"text": "a"},\n3]', ["line 2", "object", "a number"]),
        ('[{"text": "a"},]', ["line 1", "not JSON"]),
        ('[{"text": "a"}', ["line 1", "ends too early"]),
        ('[{"text": "a"},\n', ["line 2", "ends too early"]),
        ("[", ["line 1", "ends too early"]),
        ('[{"text": "a"}]\n{"text": "b"}', ["line 2", "after the end"]),
        ('{"text": "a"}\n{"inner": {"text": "b"}}', ["line 2", "among inner, inner.text"]),
    ],
)
def test_json_mistakes(refusal, content, words):
    sentence = refusal("a.json", content)
    for word in words:
        assert word in sentence


def test_wrong_field(refusal):
    assert "'contnet' among title, content; did you mean content?" in refusal(
        "a.jsonl", '{"title": "a", "content": "b"}', field="contnet"
    )


def test_a_null_is_an_empty_text_in_every_format(read, tmp_path):
    rows = [{"title": "t", "text": None}, {"title": "t", "text": "a"}, {"title": "t", "text": float("nan")}]
    documents, report = read("a.jsonl", "\n".join(map(json.dumps, rows)))
    assert (documents, report.empty, report.nulls, report.field) == ([(2, "a")], 2, 2, "text")
    documents, report = read("a.parquet", parquet(tmp_path, {"text": [None, "a", None]}))
    assert (documents, report.empty, report.nulls) == ([(2, "a")], 2, 2)


def test_the_first_records_settle_the_field_together(read, tmp_path):
    lines = '{"text": null, "other": 5}\n{"text": "a", "other": "b"}\n'
    assert read("a.jsonl", lines)[0] == [(2, "a")]
    # What is broken among them is told in its turn.
    (tmp_path / "a.json").write_text('[{"text": "a"}, {"text": "b"')
    documents = iter(Corpus([tmp_path / "a.json"]))
    assert next(documents).text == "a"
    with pytest.raises(MalmoiError, match="this is not JSON"):
        next(documents)


# CSV and TSV


def test_csv_with_quotes_and_line_ends_within(read):
    content = 'id,text\r\n1,"하나, ""둘""\r\n셋"\r\n\r\n2,넷\r\n3,\r\n'
    documents, report = read("a.csv", content.encode("cp949"))
    assert documents == [(2, '하나, "둘"\n셋'), (5, "넷")]
    assert (report.format, report.field, report.empty, report.encoding) == ("csv", "text", 1, "cp949")


def test_csv_field_beyond_the_csv_modules_own_limit(read):
    assert read("a.csv", "id,text\n1," + "x" * 1_000_000)[0] == [(2, "x" * 1_000_000)]


def test_csv_mistakes(refusal):
    sentence = refusal("a.csv", 'id,text\n1,"a\nb"\n2,c,d\n')
    assert "line 4: 2 fields expected" in sentence and "3 found" in sentence
    assert "line 3: the row that begins here is not proper CSV" in refusal("a.csv", 'id,text\n1,a\n2,"b\n3,c\n')
    assert "'txet' among id, text; did you mean text?" in refusal("a.csv", "id,text\n1,a\n", field="txet")
    assert "--text with one of id, body" in refusal("a.csv", "id,body\n1,a\n")


def test_tsv_knows_no_quoting(read, refusal):
    documents, report = read("a.txt", 'id\tdocument\n1\t"좋다\n2\t나쁘다"\n3\t\n', format="tsv", field="document")
    assert documents == [(2, '"좋다'), (3, '나쁘다"')]
    assert (report.format, report.empty) == ("tsv", 1)
    assert "line 3: 2 fields expected as in the header, 1 found" in refusal("a.tsv", "id\ttext\n1\ta\n2\n")


# Parquet


def parquet(tmp_path, columns: dict) -> bytes:
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "written", row_group_size=100)
    return (tmp_path / "written").read_bytes()


def test_parquet(read, tmp_path):
    texts = [f"{number} 번" for number in range(1000)]
    content = parquet(tmp_path, {"id": list(range(1000)), "body": texts})
    for name, packed in (("a.parquet", content), ("a.parquet.gz", gzip.compress(content))):
        documents, report = read(name, packed)
        assert documents == list(enumerate(texts, 1))
        assert (report.format, report.field) == ("parquet", "body")
    documents, report = read("a.parquet", parquet(tmp_path, {"text": ["a\r\nb", None, " "], "title": ["x", "y", "z"]}))
    assert documents == [(1, "a\nb")]
    assert report.empty == 2
    dictionary = pyarrow.array(["a", "b", "a"]).dictionary_encode()
    assert read("a.parquet", parquet(tmp_path, {"text": dictionary}))[0] == [(1, "a"), (2, "b"), (3, "a")]


def test_parquet_with_two_columns_of_one_name(read, refusal, tmp_path):
    def content(names: list[str]) -> bytes:
        arrays = [pyarrow.array([name + "1", name + "2"]) for name in "abc"]
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names), tmp_path / "written")
        return (tmp_path / "written").read_bytes()

    twins = content(["text", "text", "id"])
    assert "2 columns are called 'text'; rename all but one" in refusal("a.parquet", twins)
    assert read("a.parquet", content(["id", "id", "text"]))[0] == [(1, "c1"), (2, "c2")]
    assert "line 1: 2 columns are called 'text'" in refusal("a.csv", "text,text\na,b\n")


def test_parquet_mistakes(refusal, tmp_path):
    content = parquet(tmp_path, {"id": [1], "text": ["a"]})
    assert "'txet' among id, text; did you mean text?" in refusal("a.parquet", content, field="txet")
    assert "'id' should hold text but holds int64" in refusal("a.parquet", content, field="id")
    assert "not a Parquet file, or a damaged one" in refusal("a.parquet", content[:-20])
    assert "not a Parquet file, or a damaged one" in refusal("a.parquet", "text")
    assert "give --format parquet" in refusal("a.txt", content)
    assert "row 2: there is a NUL" in refusal("a.parquet", parquet(tmp_path, {"text": ["a", "b\0"]}))
