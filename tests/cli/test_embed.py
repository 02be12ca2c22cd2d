"""malmoi embed: formats in and out, ids, resuming to the same bytes, and a sentence for what is wrong."""

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from corpora import korean_documents
from models import make_model

import malmoi as package

TEXTS = ["나는 밥을 먹었다.", "", "말모이를 모았습니다", "  ", "책을 읽었습니다"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("embed") / "model"
    make_model().save(out)
    return out


@pytest.fixture(scope="module")
def expected(folder):
    return package.load(folder).embed(TEXTS)


@pytest.fixture
def lines(tmp_path):
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    return tmp_path


def write_inputs(where):
    records = [{"key": f"k{number}", "body": text} for number, text in enumerate(TEXTS)]
    (where / "a.jsonl").write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in records), "utf-8")
    (where / "a.csv").write_text("key,body\n" + "".join(f'{one["key"]},"{one["body"]}"\n' for one in records), "utf-8")
    (where / "a.tsv").write_text("key\tbody\n" + "".join(f"{one['key']}\t{one['body']}\n" for one in records), "utf-8")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records), where / "a.parquet")
    (where / "a.jsonl.gz").write_bytes(gzip.compress((where / "a.jsonl").read_bytes()))


def test_plain_lines_to_an_array(malmoi, folder, lines, expected):
    done = malmoi("embed", folder, "texts.txt", "--out", "new/v.npy")
    assert done.returncode == 0 and "5 texts, 32 dimensions" in done.stdout, done.stderr
    np.testing.assert_allclose(np.load(lines / "new/v.npy"), expected, atol=1e-6)
    assert sorted(path.name for path in (lines / "new").iterdir()) == ["v.npy", "v.npy.json"]
    before = (lines / "new/v.npy").stat().st_mtime_ns
    again = malmoi("embed", folder, "texts.txt", "--out", "new/v.npy")
    assert "nothing to do" in again.stdout and (lines / "new/v.npy").stat().st_mtime_ns == before


def test_a_table_that_is_called_text(malmoi, folder, tmp_path, expected):
    rows = "".join(f"k{number}\t{text}\t1\n" for number, text in enumerate(TEXTS))
    (tmp_path / "ratings.txt").write_text("id\tdocument\tlabel\n" + rows, "utf-8")
    done = malmoi("embed", folder, "ratings.txt", "--id", "id", "-o", "v.jsonl")
    assert done.returncode == 0 and "ratings.txt: read as a table with tabs" in done.stderr, done.stderr
    lines = (tmp_path / "v.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"k{number}" for number in range(len(TEXTS))]
    (tmp_path / "rows.txt").write_text(rows, "utf-8")
    words = ("rows.txt", "--text", "1", "--no-header", "--delimiter", "tab", "-o", "v.npy")
    assert malmoi("embed", folder, *words).returncode == 0
    np.testing.assert_allclose(np.load(tmp_path / "v.npy"), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.jsonl.gz"])
def test_records_keep_their_ids(malmoi, folder, tmp_path, expected, name):
    write_inputs(tmp_path)
    options = ["--text", "body", "--id", "key"]
    done = malmoi("embed", folder, name, *options, "-o", "v.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == [f"k{number}" for number in range(5)]
    np.testing.assert_allclose([row["vector"] for row in rows], expected, atol=1e-6)


def test_parquet_and_options(malmoi, folder, tmp_path):
    write_inputs(tmp_path)
    done = malmoi(
        *("embed", folder, "a.jsonl", "--text", "body", "-o", "v.parquet", "--layers", "0,-1", "--combine", "0.5,0.5"),
        *("--pool", "max", "--normalize", "--dimensions", "7", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dimensions"] == 7
    table = pyarrow.parquet.read_table(tmp_path / "v.parquet")
    assert table["id"].to_pylist() == [0, 1, 2, 3, 4]
    expected = package.load(folder).embed(
        TEXTS, layers=[0, 2], combine=[0.5, 0.5], pool="max", normalize=True, dimensions=7
    )
    np.testing.assert_allclose(table["vector"].to_pylist(), expected, atol=1e-6)


def test_ids_beside_an_array(malmoi, folder, tmp_path):
    write_inputs(tmp_path)
    assert malmoi("embed", folder, "a.csv", "--text", "body", "--id", "key", "-o", "v.npy").returncode == 0
    assert (tmp_path / "v.ids.jsonl").read_text() == "".join(f'"k{number}"\n' for number in range(5))


def test_words(malmoi, folder, lines):
    done = malmoi("embed", folder, "texts.txt", "--words", "--layers", "last", "--pieces", "mean", "-o", "w.parquet")
    assert done.returncode == 0, done.stderr
    rows = pyarrow.parquet.read_table(lines / "w.parquet").to_pylist()
    found = package.load(folder).words(TEXTS, layers="last", pieces="mean")
    assert [(row["id"], row["word"], (row["start"], row["end"])) for row in rows] == [
        (number, word, span)
        for number, one in enumerate(found)
        for word, span in zip(one.words, one.offsets, strict=True)
    ]
    vectors = np.concatenate([one.vectors for one in found])
    np.testing.assert_allclose([row["vector"] for row in rows], vectors, atol=1e-6)


def test_from_a_pipe(malmoi, folder, lines, expected):
    done = malmoi("embed", folder, "-", "-o", "v.npy", stdin=(lines / "texts.txt").read_bytes())
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(lines / "v.npy"), expected, atol=1e-6)


def test_how_many_were_cut_is_told(malmoi, folder, tmp_path):
    (tmp_path / "long.txt").write_text("짧다\n" + "책을 읽었습니다. " * 50 + "\n", "utf-8")
    done = malmoi("embed", folder, "long.txt", "-o", "v.npy")
    assert done.returncode == 0 and "1 of 2 texts" in done.stderr and "1 of them longer" in done.stdout


@pytest.mark.parametrize("ending", ["npy", "jsonl", "parquet"])
def test_killed_and_run_again_gives_the_same_bytes(malmoi, folder, tmp_path, ending):
    texts = [sentence for document in korean_documents(200) for sentence in document.split(". ")] * 2
    (tmp_path / "many.txt").write_text("\n".join(texts), "utf-8")
    assert malmoi("embed", folder, "many.txt", "-o", f"whole.{ending}", "--truncate", "window").returncode == 0
    words = [sys.executable, "-m", "malmoi", "embed", str(folder), "many.txt", "-o", f"v.{ending}"]
    running = subprocess.Popen([*words, "--truncate", "window"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    journal = tmp_path / f"v.{ending}.partial" / "journal.json"
    while not journal.exists() and running.poll() is None:
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not (tmp_path / f"v.{ending}").exists()
    done = json.loads(journal.read_text())["facts"]["texts"]
    assert 0 < done < len(texts)
    # What stands behind the journal's mark is not trusted.
    with (tmp_path / f"v.{ending}.partial" / "vectors.bin").open("ab") as file:
        file.write(b"half a vector")
    assert malmoi("embed", folder, "many.txt", "-o", f"v.{ending}", "--truncate", "window").returncode == 0
    assert (tmp_path / f"v.{ending}").read_bytes() == (tmp_path / f"whole.{ending}").read_bytes()
    assert not journal.parent.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["texts.txt", "-o", "v.bin"], [".npy", ".parquet", ".jsonl"]),
        (["texts.txt", "-o", "texts.txt/v.npy"], ["cannot be written"]),
        (["texts.txt", "-o", "v.npy", "--words"], ["choose .parquet or .jsonl"]),
        (["texts.txt", "-o", "v.jsonl", "--words", "--pool", "cls"], ["--pool", "--words"]),
        (["texts.txt", "-o", "v.npy", "--layers", "9"], ["there is no layer 9"]),
        (["texts.txt", "-o", "v.npy", "--id", "key"], ["--id", "plain text"]),
        (["missing.txt", "-o", "v.npy"], ["missing.txt", "no such file"]),
        (["empty.txt", "-o", "v.npy"], ["no text"]),
        (["half.jsonl", "-o", "v.npy"], ["half.jsonl, line 2", "surrogate"]),
        (["half.jsonl", "-o", "v.npy", "--text", "txt"], ["'txt'", "did you mean text"]),
        (["half.jsonl", "-o", "v.npy", "--id", "it"], ["no field 'it' among id, text"]),
        (["null.jsonl", "-o", "v.npy", "--id", "id"], ["line 1", "the id is None"]),
        (["long.txt", "-o", "v.npy", "--truncate", "error"], ["long.txt, line 2", "tokens"]),
        (["broken.parquet", "-o", "v.npy"], ["broken.parquet", "Parquet"]),
        ([".", "-o", "v.npy"], ["folder"]),
    ],
)
def test_what_is_wrong_is_one_sentence(refuses, folder, lines, words, says):
    (lines / "empty.txt").write_text("")
    (lines / "half.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2, "text": "b\\ud800"}\n')
    (lines / "null.jsonl").write_text('{"id": null, "text": "a"}\n')
    (lines / "long.txt").write_text("짧다\n" + "책을 읽었습니다. " * 50 + "\n", "utf-8")
    (lines / "broken.parquet").write_bytes(b"PAR1 and no more")
    refuses("embed", folder, *words, says=says)
    assert not (lines / "v.npy").exists() and not (lines / "v.npy.partial").exists()


def test_an_output_of_other_inputs(malmoi, refuses, folder, lines):
    assert malmoi("embed", folder, "texts.txt", "-o", "v.npy").returncode == 0
    refuses("embed", folder, "texts.txt", "-o", "v.npy", "--pool", "cls", says=["v.npy exists", "other text, options"])
    (lines / "texts.txt").write_text("다른 글\n", "utf-8")
    refuses("embed", folder, "texts.txt", "-o", "v.npy", says=["v.npy exists"])


def test_a_folder_without_weights(refuses, folder, lines):
    bare = shutil.copytree(folder, lines / "bare")
    (bare / "model.safetensors").unlink()
    refuses("embed", bare, "texts.txt", "-o", "v.npy", says=["holds no weights"])


@pytest.mark.parametrize("words", [("-o", "-"), ("--out", "-"), ("--out=-",)])
def test_vectors_are_printed(malmoi, folder, lines, expected, words):
    done = malmoi("embed", folder, "texts.txt", *words)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose([row["vector"] for row in rows], expected, atol=1e-6)


def test_no_input_is_overwritten(refuses, folder, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n')
    refuses("embed", folder, "a.jsonl", "-o", "a.jsonl", says=["a.jsonl", "one of the inputs"])
    (tmp_path / "theirs.npy").write_text("precious")
    refuses("embed", folder, "a.jsonl", "-o", "theirs.npy", says=["theirs.npy exists already"])


def test_places_of_words_are_those_of_the_text_as_it_was_given(malmoi, folder, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "책을\r\n읽었다"}))
    rows = malmoi("embed", folder, "a.jsonl", "--words", "--layers", "last", "-o", "-").stdout.splitlines()
    assert [(row["start"], row["end"]) for row in map(json.loads, rows)] == [(0, 2), (4, 7)]
