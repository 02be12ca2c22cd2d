"""`malmoi check TASK` as a user runs it."""

import json
import subprocess
import sys

TRAIN = "text,label\n재미있다,긍정\n지루하다,부정\n재미있다,긍정\n지루하다,긍정\n좋은 영화,긍정\n"
DEV = "text,label\n재미있다,긍정\n그저 그렇다,부정\n"


def report(malmoi, *words):
    finished = malmoi("check", *words, "--json")
    return finished.returncode, json.loads(finished.stdout), finished.stderr


def test_report(malmoi, tmp_path):
    (tmp_path / "train.csv").write_bytes(TRAIN.encode("cp949"))
    (tmp_path / "dev.csv").write_text(DEV, "utf-8")
    finished = malmoi("check", "classify", "train.csv", "--dev", "dev.csv")
    assert finished.returncode == 0, finished.stderr
    for word in (
        "cp949",
        "text, label",
        "4 (80.0%)",
        "repeated examples, train: 2",
        "same text, other label, train: 1",
        "train.csv, line 5",
        "긍정, not 부정: 지루하다",
        "dev examples that are also trained on: 1",
        "Can be trained on (5 examples, 2 to evaluate on), but look at this: ",
        "50.0% of the dev examples are also trained on",
    ):
        assert word in finished.stdout, word
    assert finished.stderr == ""


def test_json_and_columns(malmoi, tmp_path):
    (tmp_path / "a.tsv").write_text("neutral\ta b c\td\n-\te\tf\nentailment\tg\th\n")
    words = ("pair", "a.tsv", "--no-header", "--label", "0", "--text", "1", "--pair", "2")
    code, found, _ = report(malmoi, *words)
    assert (code, found["train"]["labels"]) == (0, {"-": 1, "entailment": 1, "neutral": 1})
    assert "--skip-label=-" in found["verdict"]
    code, found, _ = report(malmoi, *words, "--skip-label=-")
    assert (found["train"]["examples"], found["train"]["skipped"]) == (2, 1)
    assert (found["length_unit"], found["train"]["lengths"]["longest"]) == ("words", 4)
    assert found["verdict"].startswith("Ready to train on: 2 examples")


def test_lengths_in_tokens(malmoi, tmp_path):
    from malmoi.text.tokenizer_training import train_tokenizer

    train_tokenizer(["하나 둘 셋 넷"] * 50, kind="wordpiece", vocab_size=60).save(tmp_path / "tok")
    (tmp_path / "tok" / "config.json").write_text('{"max_position_embeddings": 6}')
    (tmp_path / "a.csv").write_text("text,label\n하나 둘 셋 넷,a\n하나 둘 셋 넷 하나,b\n", "utf-8")
    code, found, _ = report(malmoi, "classify", "a.csv", "--model", "tok")
    assert (code, found["length_unit"], found["length_limit"]) == (0, "tokens", 6)
    assert (found["train"]["lengths"]["longest"], found["train"]["too_long"]["count"]) == (7, 1)
    assert "50.0% longer than sequences will be, 6 tokens" in found["verdict"]
    assert found["seq_len"] == 6 and found["train"]["costs"] == [{"seq_len": 6, "cut": 1, "tokens": 12}]
    # Windows read all of it.
    question = {"question": "하나", "context": "하나 둘 셋 넷", "answers": {"text": ["둘"], "answer_start": [3]}}
    (tmp_path / "a.jsonl").write_text("\n".join([json.dumps(question)] * 2))
    _, found, _ = report(malmoi, "answer", "a.jsonl", "--model", "tok")
    assert (found["seq_len"], found["train"]["too_long"]["count"]) == (None, 0)


def test_problems_end_in_exit_code_2_after_the_whole_report(malmoi, tmp_path):
    (tmp_path / "train.csv").write_text("text,label\na,x\n,y\nb,y,z\nc,y\n")
    (tmp_path / "dev.csv").write_text("text,label\nd,z\n")
    code, found, said = report(malmoi, "classify", "train.csv", "--dev", "dev.csv")
    assert (code, found["train"]["examples"], found["train"]["empty"]) == (2, 2, 1)
    lines = said.strip().splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "train.csv, line 3, column 'text'",
        "train.csv, line 4",
        "dev.csv, line 2",
    ]
    assert "'z' is not one of those trained on, x, y" in lines[2]
    assert found["unseen_labels"]["count"] == 1
    assert found["verdict"].startswith("Not ready to train on")


def test_the_other_tasks(malmoi, tmp_path):
    question = {"id": "1", "question": "q", "answers": [{"text": "서울", "answer_start": 4}]}
    paragraph = {"context": "여기는 서울", "qas": [question, {**question, "id": "2"}]}
    files = {
        "regress": ("a.csv", "text,score\na,1\nb,3\n"),
        "tag": ("a.conll", "나는 O\n\n서울 B-LC\n"),
        "answer": ("a.json", json.dumps({"data": [{"paragraphs": [paragraph]}]})),
        "choose": ("b.csv", "prompt,choice1,choice2,label\np,a,b,0\nq,a,b,1\n"),
        "embed": ("c.csv", "anchor,positive\na,b\nc,d\n"),
    }
    for task, (name, content) in files.items():
        (tmp_path / name).write_text(content, "utf-8")
        finished = malmoi("check", task, name)
        assert finished.returncode == 0, finished.stderr
        assert "2 examples" in finished.stdout
    _, found, _ = report(malmoi, "regress", "a.csv")
    assert found["train"]["scores"] == {"least": 1.0, "mean": 2.0, "greatest": 3.0}
    _, found, _ = report(malmoi, "answer", "a.json")
    assert found["train"]["repaired_answers"] == 0 and found["train"]["duplicates"]["count"] == 1


def test_mistakes(refuses, malmoi, tmp_path):
    (tmp_path / "one.csv").write_text("text,label\na,x\n")
    (tmp_path / "same.csv").write_text("text,label\na,x\nb,x\n")
    (tmp_path / "data.csv").write_text("좋은 영화 였다 정말로,1\n나쁘다,0\n", "utf-8")
    refuses("check", "classify", "one.csv", says=["one.csv", "only one example"])
    refuses("check", "classify", "same.csv", says=["same.csv", "every example has the label 'x'"])
    refuses("check", "classify", "data.csv", says=["data.csv, line 1", "--no-header"])
    refuses("check", "classify", "none.csv", says=["none.csv", "no such file"])
    refuses("check", "classify", "same.csv", "--model", "nowhere", says=["nowhere", "no such folder"])
    refuses("check", "classify", "same.csv", "--label", "lable", says=["'lable'", "did you mean label?"])
    refuses("check", "classify", says=["FILES"])


def test_a_corpus_may_be_called_like_a_task(malmoi, tmp_path):
    (tmp_path / "classify").write_text("text")
    assert json.loads(malmoi("check", "./classify", "--json").stdout)["documents"] == 1


def test_standard_input(malmoi):
    finished = malmoi("check", "classify", "-", "--json", stdin=TRAIN.replace(",", "\t").encode())
    assert json.loads(finished.stdout)["train"]["examples"] == 5


def test_neither_help_nor_check_imports_torch(tmp_path):
    (tmp_path / "a.csv").write_text(TRAIN, "utf-8")
    help_words = ["check", "classify", "--help"]
    for words, absent in ((help_words, ("torch", "numpy", "pyarrow")), (["check", "classify", "a.csv"], ("torch",))):
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
    code, found, said = report(malmoi, "classify", data / "nsmc" / "test.txt", "--skip-empty")
    assert (code, said) == (0, "")
    assert (found["train"]["examples"], found["train"]["empty"]) == (49_997, 3)
    assert found["train"]["contradictions"]["count"] > 0
