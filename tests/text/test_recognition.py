"""Tables are recognised in one way, whatever the file is called, and what is taken for one is said aloud."""

import json
import warnings

import pytest

from malmoi import MalmoiError
from malmoi.errors import Notice
from malmoi.tasks.columns import Columns
from malmoi.tasks.reading import read_examples
from malmoi.text.reading import Corpus, ReadOptions
from malmoi.text.rows import RowOptions, TextRows

REVIEWS = "id\tdocument\tlabel\n9976970\t아 더빙.. 진짜 짜증나네요\t0\n3819312\t흠...포스터보고, 초딩\t1\n"
TEXTS = ["아 더빙.. 진짜 짜증나네요", "흠...포스터보고, 초딩"]


@pytest.fixture
def read(tmp_path):
    """The texts of a file as each of the three readers sees them, and what is said about it."""

    def run(name: str, content: str, text: str | None = None, label: str | None = None, **options):
        path = tmp_path / name
        path.write_text(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            corpus = Corpus([path], ReadOptions(field=text, **options))
            found = {
                "corpus": [document.text for document in corpus],
                "rows": [row.text for row in TextRows(path, text, None, RowOptions(**options))],
            }
            if label:
                columns = Columns(text=text, label=label, **options)
                examples = read_examples("classify", [path], columns, labelled=True)
                found["task"] = [example.text for example in examples]
        assert len({tuple(texts) for texts in found.values()}) == 1, found
        said = sorted({str(one.message) for one in caught if issubclass(one.category, Notice)})
        return found["rows"], said

    return run


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "ratings"])
def test_tabs(read, name):
    texts, said = read(name, REVIEWS, label="label")
    assert texts == TEXTS
    if name == "a.tsv":
        assert said == []
    else:
        assert "read as a table with tabs between its columns and the columns id, document, label" in said[0]


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_other_delimiters(read, name, delimiter):
    texts, said = read(name, REVIEWS.replace("\t", delimiter), label="label")
    assert texts == TEXTS
    assert len(said) == 1


def test_ids_of_a_table_by_another_name(tmp_path):
    (tmp_path / "a.txt").write_text(REVIEWS)
    with pytest.warns(Notice):
        rows = list(TextRows(tmp_path / "a.txt", None, "id"))
    assert [row.id for row in rows] == ["9976970", "3819312"]


def test_a_table_without_header(read):
    rows = REVIEWS.partition("\n")[2]
    for name in ("a.tsv", "a.txt"):
        assert read(name, rows, text="1", label="2", no_header=True)[0] == TEXTS
        with pytest.raises(MalmoiError, match="--no-header"):
            read(name, rows)
    assert read("a.csv", rows.replace("\t", "#"), text="1", label="2", no_header=True, delimiter="#")[0] == TEXTS
    assert read("a.txt", rows, text="1", label="2", no_header=True, delimiter="tab")[0] == TEXTS
    with pytest.raises(MalmoiError, match="--format txt"):
        read("a.txt", "the\t5\na\t3\n")


def test_the_first_row_of_a_single_column_is_not_lost(read):
    texts, said = read("a.csv", "첫째 문장이다.\n둘째 문장이다.\n")
    assert texts == ["첫째 문장이다.", "둘째 문장이다."]
    assert "the only column has no header" in said[0]
    assert read("a.csv", "text\n첫째 문장이다.\n")[0] == ["첫째 문장이다."]
    assert read("a.csv", "사과\n배\n", no_header=True)[0] == ["사과", "배"]
    assert read("a.csv", "사과\n배\n", text="사과")[0] == ["배"]
    with pytest.raises(MalmoiError, match="is '사과' the name of the only column, or its first text"):
        read("a.csv", "사과\n배\n")


def test_json_lines_by_another_name(read):
    content = "".join(json.dumps({"id": 1, "text": text}) + "\n" for text in TEXTS)
    texts, said = read("a.txt", content)
    assert texts == TEXTS and "read as JSON lines" in said[0]


@pytest.mark.parametrize(
    "content",
    [
        "A line, with commas\nand, another\n",
        "An outline\n\tone\n\ttwo\n",
        "\tall\n\tindented\n",
        "text; and more\nnothing\nof it\n",
        "id\ttext in one line",
        "{not json}\n{at all}\n",
    ],
)
def test_plain_text_stays_plain_text(tmp_path, content):
    (tmp_path / "a.txt").write_text(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Notice)
        [document] = Corpus([tmp_path / "a.txt"])
    assert document.text == content


def test_a_told_format_is_taken(tmp_path):
    (tmp_path / "a.txt").write_text(REVIEWS)
    [document] = Corpus([tmp_path / "a.txt"], ReadOptions(format="txt"))
    assert document.text == REVIEWS


def test_a_ragged_row_of_a_recognised_table_is_told(tmp_path):
    (tmp_path / "a.txt").write_text(REVIEWS + "5\tgood\t1\n" * 40 + "5\tbad\n")
    with pytest.warns(Notice), pytest.raises(MalmoiError, match="line 44: 3 fields expected as in the header, 2 found"):
        list(Corpus([tmp_path / "a.txt"]))


def test_delimiters_are_characters():
    for wrong in ("", ";;", '"', "\n"):
        with pytest.raises(MalmoiError, match="--delimiter"):
            ReadOptions(delimiter=wrong)


def test_real_files(data):
    for name, options, format in (
        ("nsmc/test.txt", {}, "tsv"),
        ("wikitext-2/test.txt", {}, "txt"),
        ("phrases/phrases_en.txt", {}, "txt"),
        ("snli/test.tsv", {"no_header": True, "field": "1"}, "tsv"),
    ):
        corpus = Corpus([data / name], ReadOptions(**options))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Notice)
            next(iter(corpus))
        assert corpus.reports[0].format == format
