"""`malmoi check` as a user runs it."""

import json
import subprocess
import sys

KOREAN = "첫째 문장이다. 둘째 문장이다.\n\n셋째 문장이다.\n"


def test_report(malmoi, tmp_path):
    (tmp_path / "a.txt").write_bytes(KOREAN.encode("cp949"))
    finished = malmoi("check", "a.txt")
    assert finished.returncode == 0, finished.stderr
    for word in ("a.txt", "cp949", "blank", "Hangul syllables", "Ready to train on: 2 documents, 6 words"):
        assert word in finished.stdout
    assert "\x1b" not in finished.stdout
    assert finished.stderr == ""


def test_json(malmoi, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"title": "t", "body": "하나. 둘."}) + "\n")
    finished = malmoi("check", "a.jsonl", "--field", "body", "--json")
    report = json.loads(finished.stdout)
    assert (report["documents"], report["sentences"]) == (1, 2)
    assert report["files"][0]["field"] == "body"
    assert report["scripts"]["Hangul syllables"] == 3


def test_what_was_taken_for_a_table_is_said(malmoi, tmp_path):
    (tmp_path / "reviews.txt").write_text("id\tdocument\tlabel\n1\t좋다\t1\n2\t나쁘다\t0\n")
    finished = malmoi("check", "reviews.txt", "--json")
    said = "malmoi: reviews.txt: read as a table with tabs between its columns and the columns id, document, label"
    assert said in finished.stderr
    [file] = json.loads(finished.stdout)["files"]
    assert (file["format"], file["field"], file["documents"]) == ("tsv", "document", 2)
    words = ("check", "reviews.txt", "--text", "1", "--no-header", "--delimiter", "tab", "--json")
    assert json.loads(malmoi(*words).stdout)["documents"] == 3


def test_brackets_in_the_text_are_no_markup(malmoi, tmp_path):
    (tmp_path / "a.txt").write_text("[bold]x[/nonsense]\n\n[bold]x[/nonsense]\n")
    finished = malmoi("check", "a.txt")
    assert finished.returncode == 0, finished.stderr
    assert "[bold]x[/nonsense]" in finished.stdout


def test_standard_input(malmoi, refuses):
    report = json.loads(malmoi("check", "-", "--json", stdin=KOREAN.encode("utf-16")).stdout)
    assert report["documents"] == 2
    assert report["files"][0]["path"] == "standard input"
    assert report["files"][0]["encoding"] == "utf-16-le"
    words = ("check", "-", "--format", "jsonl", "--json")
    assert json.loads(malmoi(*words, stdin=b'{"text": "a"}\n{"text": "b"}').stdout)["documents"] == 2
    refuses("check", "-", stdin=b"", says=["standard input", "no text"])
    refuses("check", "-", stdin=b"fine\nnot \xff fine\n", says=["standard input, line 2", "0xff", "--encoding"])


def test_splitter_is_chosen(malmoi, tmp_path):
    (tmp_path / "a.txt").write_text("One. Two.\nThree.")
    for kind, sentences in (("rules", 3), ("lines", 2)):
        report = json.loads(malmoi("check", "a.txt", "--sentences", kind, "--json").stdout)
        assert report["sentences"] == sentences


def test_unreadable_files_end_in_exit_code_2_after_the_whole_report(malmoi, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\noops\n{"text": 3}\n')
    (tmp_path / "b.txt").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "c.txt").write_text("two")
    finished = malmoi("check", "a.jsonl", "b.txt", "c.txt", "--json")
    assert finished.returncode == 2
    assert json.loads(finished.stdout)["documents"] == 2
    lines = finished.stderr.strip().splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["malmoi", "a.jsonl, line 2"],
        ["malmoi", "a.jsonl, line 3"],
        ["malmoi", "b.txt"],
    ]


def test_mistakes(refuses, tmp_path):
    (tmp_path / "a.txt").write_text("text")
    refuses("check", "none.txt", says=["none.txt", "no such file"])
    refuses("check", "a.txt", "--encoding", "utf-9", says=["utf-9", "did you mean utf-8"])
    refuses("check", "a.txt", "--format", "xml", says=["format", "xml"])
    refuses("check", "a.txt", "--documents", "pages", says=["documents", "pages"])
    refuses("check", says=["FILES"])


def test_neither_help_nor_check_imports_torch(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    for words, absent in ((["check", "--help"], ("torch", "numpy", "pyarrow")), (["check", "a.txt"], ("torch",))):
        program = (
            f"import sys; sys.argv[1:] = {words}\nfrom malmoi.cli import main\n"
            "try:\n    main()\nexcept SystemExit:\n    pass\n"
            f"print([name for name in {absent} if name in sys.modules], file=sys.stderr)"
        )
        finished = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert finished.stderr.strip() == "[]"


def test_real_reviews(malmoi, data):
    words = ("check", data / "nsmc" / "test.txt", "--format", "tsv", "--field", "document", "--json")
    report = json.loads(malmoi(*words).stdout)
    assert report["documents"] + report["empty"] == 50_000
