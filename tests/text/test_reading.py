"""Every format, compression and cut is read as promised, and every mistake is named with its place."""

import gzip
import os
import subprocess
import sys
import threading
import tracemalloc

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi import MalmoiError
from malmoi.text import plaintext
from malmoi.text.plaintext import read_plain_text
from malmoi.text.reading import Corpus, ReadOptions
from malmoi.text.sources import SourceReport

KOREAN = "첫째 줄이다.\n둘째 줄이다.\n"


def zstd(content: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


# Plain text


def test_small_text_without_blank_lines_is_one_document(read):
    documents, report = read("a.txt", KOREAN)
    assert documents == [(1, KOREAN)]
    assert (report.format, report.rule, report.encoding, report.compression) == ("txt", "file", "utf-8", None)


def test_blank_lines_separate_documents(read):
    documents, report = read("a.md", "\n \n하나\n둘\n \n\t\n\n셋\r\n\r\n  넷\n\n")
    assert documents == [(3, "하나\n둘"), (8, "셋"), (10, "  넷")]
    assert report.rule == "blank"


def test_titles_separate_articles(read):
    text = " \n = 말모이 = \n \n 첫 문단 \n = = 역사 = = \n 둘째 문단 \n = Second = \n text = more \n"
    documents, report = read("a.txt", text)
    assert report.rule == "wiki"
    assert [(line, body.split()[1]) for line, body in documents] == [(2, "말모이"), (7, "Second")]
    assert "= = 역사 = =" in documents[0][1] and "text = more" in documents[1][1]


def test_large_text_without_blank_lines_is_one_document_a_line(read):
    documents, report = read("a.txt", KOREAN * 20_000)
    assert len(documents) == 40_000
    assert documents[:2] == [(1, "첫째 줄이다."), (2, "둘째 줄이다.")]
    assert report.rule == "line"


def test_trailing_blank_line_does_not_separate(read):
    assert read("a.txt", "하나\n둘\n\n")[1].rule == "file"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("line", [(1, "하나"), (2, "둘"), (4, "셋")]),
        ("blank", [(1, "하나\n둘"), (4, "셋")]),
        ("file", [(1, "하나\n둘\n\n셋")]),
    ],
)
def test_rule_given_by_hand(read, rule, expected):
    documents, report = read("a.txt", "하나\n둘\n\n셋", documents=rule)
    assert documents == expected
    assert report.rule == rule


def test_only_newlines_and_returns_end_a_line(read):
    documents, _ = read("a.txt", "a\u2028b\x0bc\x0cd\x85e\r\nf\rg", documents="line")
    assert documents == [(1, "a\u2028b\x0bc\x0cd\x85e"), (2, "f"), (3, "g")]


@given(
    st.text(st.sampled_from("ab \n\t가"), max_size=60), st.integers(1, 5), st.sampled_from(["line", "blank", "file"])
)
def test_how_the_text_is_cut_into_chunks_makes_no_difference(text, size, rule):
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    whole = list(read_plain_text(iter([text]), SourceReport("x", "txt"), rule))
    assert list(read_plain_text(iter(pieces), SourceReport("x", "txt"), rule)) == whole
    lines = text.split("\n")
    for document in whole:
        assert document.text.strip()
        assert lines[document.line - 1 :][: document.text.count("\n") + 1] == document.text.split("\n")
    if rule != "file":
        assert "".join("".join(document.text for document in whole).split()) == "".join(text.split())


def test_unknown_ending_is_read_as_text(read):
    assert read("notes.log", "hello")[1].format == "txt"


def test_fifty_megabytes_in_one_line_are_refused_without_holding_them(refusal):
    content = b"a" * 50_000_000
    tracemalloc.start()
    sentence = refusal("a.txt", content, documents="line")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "line 1: this line is longer than 16,777,216 characters" in sentence
    assert peak < 30e6


def test_over_long_documents(read, refusal, monkeypatch):
    monkeypatch.setattr(plaintext, "LONGEST_CHARACTERS", 100)
    assert "choose --documents blank or --documents line" in refusal("a.txt", "x" * 101, documents="file")
    long = "one\n\n" + "more\n" * 21
    assert "line 3: the document" in (sentence := refusal("a.txt", long, documents="blank"))
    assert "choose --documents line" in sentence
    assert len(read("a.txt", long, documents="line")[0]) == 22
    assert "line 2: this line" in refusal("a.jsonl", '{"text": "a"}\n{"text": "' + "x" * 101)


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(("낱말 " * 30 + "\n").encode() * 300_000)
    corpus = Corpus([path], ReadOptions(documents="line"))
    documents = iter(corpus)
    next(documents)
    tracemalloc.start()
    assert sum(1 for _ in documents) == 299_999
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6 < corpus.total_bytes / 6


# Compression


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_compressed(read, pack):
    text = "".join(f"{number} 번째 문장이다.\n" for number in range(100_000))
    content = pack(text.encode())
    documents, report = read(f"a.txt.{'gz' if pack is gzip.compress else 'zst'}", content, documents="line")
    assert documents == list(enumerate(text.split("\n")[:-1], 1))
    assert report.compression == {gzip.compress: "gzip", zstd: "zstd"}[pack]
    # By its first bytes, whatever it is called; and several joined together.
    assert read("b.txt", pack(b"one\n") + pack(b"two\n"))[0] == [(1, "one\ntwo\n")]


@pytest.mark.parametrize(("pack", "ending"), [(gzip.compress, "gz"), (zstd, "zst")])
def test_damaged_compression(refusal, pack, ending):
    content = pack(os.urandom(200_000).hex().encode())
    assert "damaged or cut short" in refusal(f"a.txt.{ending}", content[: len(content) // 2])
    assert "damaged or cut short" in refusal(f"a.txt.{ending}", content[:-3])
    spoiled = content[:12] + bytes(byte ^ 255 for byte in content[12:200]) + content[200:]
    assert "damaged or cut short" in refusal(f"a.txt.{ending}", spoiled)
    assert "in spite of its name" in refusal(f"a.txt.{ending}", b"plain text")


def test_a_highly_compressed_file_is_unpacked_bit_by_bit(refusal):
    content = gzip.compress(b"a" * 200_000_000, 1)
    tracemalloc.start()
    assert "longer than" in refusal("a.txt.gz", content, documents="line")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 80e6


# Paths


def test_a_folder_is_read_in_sorted_order_known_endings_only(tmp_path):
    for name in (
        "b.txt",
        "a/z.jsonl",
        "a/b.txt.gz",
        ".hidden.txt",
        ".git/x.txt",
        "image.png",
        "c.csv.zst",
        "empty.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        content = {"z.jsonl": b'{"text": "json"}', "c.csv.zst": b"text\ncsv\n", "empty.txt": b""}.get(path.name, b"txt")
        packed = {".gz": gzip.compress, ".zst": zstd}.get(path.suffix, bytes)(content)
        path.write_bytes(packed)
    corpus = Corpus([tmp_path])
    assert [str(source.path.relative_to(tmp_path)) for source in corpus.sources] == [
        *("b.txt", "c.csv.zst", "empty.txt", "a/b.txt.gz", "a/z.jsonl")
    ]
    for _ in range(2):  # a corpus can be read again
        assert [document.text for document in corpus] == ["txt", "csv", "txt", "json"]
        assert [report.documents for report in corpus.reports] == [1, 1, 0, 1, 1]
        assert corpus.bytes_read == corpus.total_bytes
    # A file that is named twice is read once.
    assert len(Corpus([tmp_path / "b.txt", tmp_path]).sources) == 5


def test_paths_that_hold_nothing_are_refused_at_once(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").touch()
    for paths, word in (
        ([tmp_path / "none.txt"], "none.txt: there is no such file"),
        ([tmp_path / "empty"], "holds no text"),
        ([tmp_path / "a.txt"], "a.txt: there is no text"),
        ([], "no input"),
    ):
        with pytest.raises(MalmoiError, match=word):
            Corpus(paths)


def test_a_file_of_white_space_is_refused(refusal):
    assert "there is no text in this file" in refusal("a.txt", " \n\n\t\n")
    assert "there is no text in this file" in refusal("a.csv", "id,text\n1,\n")


def test_wrong_options():
    with pytest.raises(MalmoiError, match=r"--format jsnl: .* did you mean jsonl"):
        ReadOptions(format="jsnl")
    with pytest.raises(MalmoiError, match=r"--documents lines: .* did you mean line"):
        ReadOptions(documents="lines")
    with pytest.raises(MalmoiError, match="--encoding utf-9"):
        Corpus(["a.txt"], ReadOptions(encoding="utf-9"))


def test_a_named_pipe_has_no_size(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=("hello",))
    writer.start()
    corpus = Corpus([path])
    assert corpus.total_bytes is None
    assert [document.text for document in corpus] == ["hello"]
    writer.join()


TWICE = """
import sys
from malmoi import MalmoiError
from malmoi.text.reading import Corpus
from malmoi.text.sources import keep_standard_input
if "keep" in sys.argv:
    keep_standard_input(["-"])
try:
    for _ in range(2):
        print([document.text for document in Corpus(["-"])])
except MalmoiError as mistake:
    print(mistake)
"""


@pytest.mark.parametrize("keep", [True, False])
def test_standard_input_is_read_twice(tmp_path, keep):
    program = [sys.executable, "-c", TWICE] + ["keep"] * keep
    (tmp_path / "a.txt").write_text("hello")
    with (tmp_path / "a.txt").open() as file:
        from_file = subprocess.run(program, stdin=file, capture_output=True, text=True, check=True).stdout
    from_pipe = subprocess.run(program, input="hello", capture_output=True, text=True, check=True).stdout
    assert from_file == "['hello']\n" * 2
    refusal = "standard input can be read only once; put the text in a file first\n"
    assert from_pipe == (from_file if keep else "['hello']\n" + refusal)


def test_reading_imports_nothing_heavy(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    program = (
        "import sys; from malmoi.text.reading import Corpus; list(Corpus(['a.txt']));"
        "print([name for name in ('torch', 'numpy', 'pyarrow', 'rich.table') if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


# Real corpora


def test_real_petitions(data):
    corpus = Corpus([data / "petitions"])
    texts = [document.text for document in corpus]
    assert sum(report.documents + report.empty for report in corpus.reports) == 3691
    assert {(report.format, report.field, report.encoding) for report in corpus.reports} == {
        ("jsonl", "content", "utf-8")
    }
    assert all(text.strip() for text in texts)


def test_real_reviews_are_tab_separated_in_spite_of_their_name(data):
    corpus = Corpus([data / "nsmc" / "test.txt"], ReadOptions(format="tsv", field="document"))
    assert sum(1 for _ in corpus) + corpus.reports[0].empty == 50_000


def test_real_wikitext_is_recognised_by_its_titles(data):
    corpus = Corpus([data / "wikitext-2" / "test.txt"])
    documents = list(corpus)
    assert corpus.reports[0].rule == "wiki"
    assert 60 <= len(documents) <= 64  # 60 articles, and a few figures that look like titles
    assert sum(len(document.text.split()) for document in documents) == 241_211


def test_real_wikitext_can_be_separated_by_its_lines_with_a_space(data):
    path = data / "wikitext-2" / "test.txt"
    documents = list(Corpus([path], ReadOptions(documents="blank")))
    lines = path.read_text(encoding="utf-8").split("\n")
    paragraphs = sum(bool(line.strip()) and not above.strip() for above, line in zip(["", *lines], lines, strict=False))
    assert len(documents) == paragraphs
    for document in documents:
        assert lines[document.line - 1] == document.text.split("\n")[0]


def test_real_reviews_in_cp949_are_the_same_text(data, tmp_path):
    original = [document.text for document in Corpus([data / "nsmc" / "test.txt"], ReadOptions(format="tsv"))]
    lines = (data / "nsmc" / "test.txt").read_text(encoding="utf-8").split("\n")
    korean = "\n".join(line for line in lines if line.encode("cp949", "ignore").decode("cp949") == line)
    (tmp_path / "a.tsv").write_bytes(korean.encode("cp949"))
    corpus = Corpus([tmp_path / "a.tsv"])
    texts = [document.text for document in corpus]
    assert corpus.reports[0].encoding == "cp949"
    assert len(texts) > 49_000
    assert set(texts) <= set(original)
