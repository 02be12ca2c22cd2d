"""Questions on the command line: another threshold for no answer, and the best one."""

import json

import pytest
import toys


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that has seen questions without an answer, and questions to judge it by, two of them with one id."""
    out = tmp_path_factory.mktemp("answering")
    toys.run(toys.prepare("answer or not", epochs=3), out / "run")
    asked = toys.questions(60, seed=5, impossible=0.4)
    records = [
        {"id": "same", "question": one.question, "context": one.context, "answers": [vars_of(a) for a in one.answers]}
        for one in asked
    ]
    (out / "dev.jsonl").write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in records), "utf-8")
    return out, sum(one.impossible for one in asked) / len(asked)


def vars_of(answer):
    return {"text": answer.text, "answer_start": answer.start}


def test_evaluate_finds_a_threshold_that_gives_the_best_scores(folder, malmoi, refuses):
    out, impossible = folder

    def evaluate(*words):
        made = malmoi("evaluate", out / "run" / "model", out / "dev.jsonl", "--json", *words)
        assert made.returncode == 0, made.stderr
        return json.loads(made.stdout)

    plain = evaluate()
    assert plain["examples"] == 60 and plain["best_f1"] >= plain["f1"]
    chosen = evaluate(f"--threshold={plain['best_f1_threshold']}")
    assert chosen["f1"] == pytest.approx(plain["best_f1"], abs=1e-6)
    assert evaluate("--threshold=-1000")["f1"] == pytest.approx(impossible)
    refuses("evaluate", out / "run" / "model", out / "dev.jsonl", "--threshold=nan", says=["--threshold nan"])


def test_predict_takes_a_threshold(folder, malmoi):
    out, _ = folder
    answers = {}
    for threshold in (-1000, 1000):
        made = malmoi("predict", out / "run" / "model", out / "dev.jsonl", f"--threshold={threshold}")
        assert made.returncode == 0, made.stderr
        answers[threshold] = [json.loads(line)["text"] for line in made.stdout.splitlines()]
    assert not any(answers[-1000]) and all(answers[1000]) and len(answers[1000]) == 60
