"""malmoi predict: a record for every row, offsets of the text as it was given, and nothing overwritten."""

import json

import pyarrow
import pyarrow.parquet
import pytest
import toys
from toys import prepare, run


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of a model for a task, made when it is asked for."""
    made = {}

    def make(name):
        if name not in made:
            out = tmp_path_factory.mktemp("predict") / "run"
            run(prepare(name), out)
            made[name] = out / "model"
        return made[name]

    return make


def records(finished):
    assert finished.returncode == 0, finished.stderr
    return [json.loads(line) for line in finished.stdout.splitlines()]


def test_every_row_has_a_record(malmoi, model, tmp_path):
    (tmp_path / "a.txt").write_text("\n학생이 훌륭한 영화를 보았다.\n  \n", "utf-8")
    finished = malmoi("predict", model("classify"), "a.txt")
    first, second, third = records(finished)
    assert first == {"id": 0, "label": None, "score": None, "scores": None}
    assert (second["id"], second["label"]) == (1, "좋음") and (third["id"], third["label"]) == (2, None)
    assert "2 of 3 rows have no text; their answers are null" in finished.stderr
    # --skip-empty changes nothing, and a table has the same columns throughout.
    done = malmoi("predict", model("classify"), "a.txt", "--skip-empty", "-o", "a.csv")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "a.csv").read_text("utf-8").splitlines()
    assert lines[0] == "id,label,score,scores" and lines[1] == "0,,," and lines[2].startswith("1,좋음,")


def test_ids_and_columns_are_kept(malmoi, model, tmp_path):
    rows = [
        {"key": "a", "document": "학생이 훌륭한 영화를 보았다.", "label": "나쁨"},
        {"key": "b", "document": None, "label": "좋음"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        first, second = records(malmoi("predict", model("classify"), name, "--id", "key", "--keep", "text,id,label"))
        assert list(first) == ["id", "text", "given_label", "label", "score", "scores"]
        assert (first["id"], first["text"], first["given_label"]) == ("a", rows[0]["document"], "나쁨")
        assert (second["id"], second["text"], second["label"]) == ("b", None, None)
    (tmp_path / "b.csv").write_text("id,text\n17,영화\n", "utf-8")
    assert records(malmoi("predict", model("classify"), "b.csv"))[0]["id"] == "17"


def test_quoted_texts(malmoi, model, refuses):
    texts = ("훌륭한 영화를 보았다.", "끔찍한 영화를 보았다.")
    first, second = records(malmoi("predict", model("classify"), *texts, "--keep", "text"))
    assert (first["label"], first["text"], second["label"]) == ("좋음", "훌륭한 영화를 보았다.", "나쁨")
    assert "no file 끔찍한" in malmoi("predict", model("classify"), "끔찍한").stderr
    [answer] = records(malmoi("predict", model("answer"), "어디에서 그랬나요?", "할머니가 노래를 한강 편지를 들었다."))
    assert answer["id"] == 0 and answer["text"] == "한강"
    refuses("predict", model("classify"), "absent.tsv", says=["absent.tsv", "No such file"])
    refuses("predict", model("answer"), "어디에서 그랬나요?", says=["the question and its context; 1 given"])


def test_offsets_are_those_of_the_text_as_it_was_given(malmoi, model, tmp_path):
    texts = ["고양이가  부산 거리에서 영화를 보았다.", "할머니가\r\n\r\n서울 거리에서 노래를 들었다."]
    (tmp_path / "a.txt").write_text(texts[0] + "\n", "utf-8")
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts), "utf-8")
    (tmp_path / "a.csv").write_bytes(("text\r\n" + "".join(f'"{text}"\r\n' for text in texts)).encode())
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet")
    import malmoi as package

    expected = [[(one.start, one.end) for one in found.entities] for found in package.load(model("tag")).tag(texts)]
    assert expected[0][0] == (6, 13) and expected[1][0] == (8, 15)
    for name in ("a.txt", "a.jsonl", "a.csv", "a.parquet"):
        found = records(malmoi("predict", model("tag"), name))
        assert len(found) == (1 if name == "a.txt" else 2)
        for text, places, record in zip(texts, expected, found, strict=False):
            assert [(one["start"], one["end"]) for one in record["entities"]] == places, name
            assert all(text[one["start"] : one["end"]] == one["text"] for one in record["entities"])


def test_answers_in_squads_form(malmoi, model, tmp_path):
    context = "할머니가 노래를\r\n한강 편지를 들었다."
    questions = [{"id": "q1", "question": "어디에서 그랬나요?"}, {"id": "q2", "question": " "}]
    paragraph = {"context": context, "qas": questions}
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}), "utf-8")
    first, second = records(malmoi("predict", model("answer"), "a.json", "--keep", "pair"))
    assert (first["id"], first["pair"]) == ("q1", context) and context[first["start"] : first["end"]] == first["text"]
    assert (second["id"], second["text"], second["candidates"]) == ("q2", None, None)


def test_nothing_is_overwritten(malmoi, refuses, model, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "훌륭한 영화를"}), "utf-8")
    before = (tmp_path / "a.jsonl").read_bytes()
    refuses("predict", model("classify"), "a.jsonl", "-o", "a.jsonl", says=["a.jsonl", "one of the inputs"])
    refuses("predict", model("classify"), ".", "-o", "b.jsonl", says=["b.jsonl", "all of which is read"])
    (tmp_path / "theirs.csv").write_text("precious")
    refuses("predict", model("classify"), "a.jsonl", "-o", "theirs.csv", says=["theirs.csv exists already"])
    assert (tmp_path / "a.jsonl").read_bytes() == before and (tmp_path / "theirs.csv").read_text() == "precious"
    words = ("predict", model("classify"), "a.jsonl", "-o", "out.jsonl")
    assert "1 predictions" in malmoi(*words).stderr
    assert "nothing to do" in malmoi(*words).stderr
    refuses(*words, "--keep", "text", says=["out.jsonl exists", "other text, options"])


def test_what_is_cut_is_said_once(malmoi, model, tmp_path):
    lines = ["훌륭한 영화를"] * 3 + ["학생이 서울 영화를 보았다. " * 9]
    (tmp_path / "a.txt").write_text("\n".join(lines), "utf-8")
    (tmp_path / "a.tsv").write_text("text\tlabel\n" + "".join(f"{line}\t좋음\n" for line in lines), "utf-8")
    for words in (("predict", model("classify"), "a.txt"), ("evaluate", model("classify"), "a.tsv")):
        said = malmoi(*words, "--seq-len", "16").stderr
        assert said.count("1 of 4 texts were longer than 16 tokens and cut; --seq-len 47 would cut none") == 1, said


def test_several_labels_need_no_option(malmoi, model, tmp_path):
    rows = [f"{one.text}\t{','.join(one.labels)}" for one in toys.topics(20, seed=9)]
    (tmp_path / "a.tsv").write_text("\n".join(["text\tlabel", *rows]), "utf-8")
    figures = malmoi("evaluate", model("several labels"), "a.tsv", "--json")
    assert figures.returncode == 0 and "micro_f1" in json.loads(figures.stdout), figures.stderr
