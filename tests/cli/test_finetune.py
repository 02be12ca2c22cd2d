"""malmoi finetune, evaluate and predict as a user runs them."""

import csv
import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
import toys

OPTIONS = ("--epochs", 5, "--batch-size", 16, "--lr", 3e-3, "--save-every", 5)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A model and files of examples."""
    folder = tmp_path_factory.mktemp("work")
    toys.make_bundle().save(folder / "model")
    for name, count, seed in (("train", 128, 0), ("dev", 48, 9)):
        lines = [f"{one.text}\t{one.labels[0]}" for one in toys.sentiment(count, seed=seed)]
        (folder / f"{name}.tsv").write_text("\n".join(["text\tlabel", *lines]) + "\n", "utf-8")
        words = [
            "\n".join(f"{word} {tag}" for word, tag in zip(one.words, one.tags, strict=True))
            for one in toys.tags(count, seed=seed)
        ]
        (folder / f"{name}.conll").write_text("\n\n".join(words) + "\n", "utf-8")
        records = [
            {
                "id": one.id,
                "question": one.question,
                "context": one.context,
                "answers": {"text": [a.text for a in one.answers], "answer_start": [a.start for a in one.answers]},
            }
            for one in toys.questions(count, seed=seed)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records), "utf-8")
    return folder


def call(*words, cwd, code=0, **environment):
    finished = subprocess.run(
        [sys.executable, "-m", "malmoi", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert finished.returncode == code, finished.stderr
    return finished


@pytest.fixture(scope="module")
def run(work):
    call(
        "finetune", "classify", "train.tsv", "--dev", "dev.tsv", "--model", "model", "--out", "run", *OPTIONS, cwd=work
    )
    return work / "run"


def test_a_run_leaves_everything_in_its_folder(run):
    assert {path.name for path in run.iterdir()} >= {"config.json", "log.jsonl", "checkpoints", "model", "report.html"}
    assert list(run.glob("events.out.tfevents.*"))
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert len(records) == 40 and [one["step"] for one in records if "evaluation" in one] == [7, 15, 23, 31, 39]
    page = (run / "report.html").read_text("utf-8")
    assert "Accuracy" in page and "What was taken for what" in page
    card = (run / "model" / "README.md").read_text("utf-8")
    assert "text-classification" in card and "AutoModelForSequenceClassification" in card


def test_transformers_gives_the_same_labels(run, work):
    import transformers

    finished = call("predict", "run/model", "dev.tsv", cwd=work)
    answers = [json.loads(line) for line in finished.stdout.splitlines()]
    pipe = transformers.pipeline("text-classification", str(run / "model"), device="cpu")
    examples = toys.sentiment(48, seed=9)
    for answer, theirs in zip(answers, pipe([one.text for one in examples]), strict=True):
        assert answer["label"] == theirs["label"] and abs(answer["score"] - theirs["score"]) < 1e-5


def test_evaluate_and_predict(run, work):
    figures = json.loads(call("evaluate", "run/model", "dev.tsv", "--json", cwd=work).stdout)
    assert figures["examples"] == 48 and figures["accuracy"] > 0.8
    assert "accuracy" in call("evaluate", "run/model", "dev.tsv", cwd=work).stdout
    call("predict", "run/model", "dev.tsv", "-o", "out.csv", cwd=work)
    rows = list(csv.DictReader((work / "out.csv").read_text("utf-8").splitlines()))
    gold = [one.labels[0] for one in toys.sentiment(48, seed=9)]
    assert sum(row["label"] == label for row, label in zip(rows, gold, strict=True)) / 48 == figures["accuracy"]
    assert set(json.loads(rows[0]["scores"])) == {"좋음", "나쁨"}
    # Texts alone, a line each.
    (work / "texts.txt").write_text("\n".join(one.text for one in toys.sentiment(48, seed=9)), "utf-8")
    call("predict", "run/model", "texts.txt", "--out", "out.jsonl", cwd=work)
    lines = (work / "out.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["label"] for line in lines] == [row["label"] for row in rows]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_predict_killed_and_run_again_gives_the_same_bytes(run, work, ending):
    texts = [one.text for one in toys.sentiment(9000, seed=5)]
    (work / "many.txt").write_text("\n".join(texts) + "\n", "utf-8")
    call("predict", "run/model", "many.txt", "-o", f"whole.{ending}", cwd=work)
    words = [sys.executable, "-m", "malmoi", "predict", "run/model", "many.txt", "-o", f"killed.{ending}"]
    running = subprocess.Popen(words, cwd=work, stderr=subprocess.DEVNULL)
    journal = work / f"killed.{ending}.partial" / "journal.json"
    deadline = time.monotonic() + 60
    while not journal.exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert not (work / f"killed.{ending}").exists()
    assert 0 < json.loads(journal.read_text())["facts"]["count"] < len(texts)
    call("predict", "run/model", "many.txt", "-o", f"killed.{ending}", cwd=work)
    assert (work / f"killed.{ending}").read_bytes() == (work / f"whole.{ending}").read_bytes()
    assert (work / f"killed.{ending}").read_text("utf-8").count("\n") == len(texts) + (ending == "csv")
    assert not journal.parent.exists()


def test_predict_leaves_nothing_of_a_file_at_fault(refuses, run, work, tmp_path):
    (work / "holes.tsv").write_text("text\n" + "학생이 보았다.\n" * 3000 + "둘\t셋\n", "utf-8")
    refuses("predict", run / "model", work / "holes.tsv", "-o", "out.jsonl", says=["holes.tsv, line 3002"])
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_a_sentence_and_loses_nothing(run, work):
    words = ("finetune", "classify", "train.tsv", "--dev", "dev.tsv", "--model", "model", "--out", "full", *OPTIONS)
    finished = subprocess.run(
        [sys.executable, "-m", "malmoi", *map(str, words)],
        cwd=work,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)),
    )
    assert finished.returncode == 2 and "Traceback" not in finished.stderr, finished.stderr
    assert "run the same command again" in finished.stderr
    call(*words, cwd=work)
    assert (work / "full/model/model.safetensors").read_bytes() == (run / "model/model.safetensors").read_bytes()


def test_the_same_command_again_has_nothing_to_do(run, work):
    before = (run / "model" / "model.safetensors").read_bytes()
    words = ("finetune", "classify", "train.tsv", "--dev", "dev.tsv", "--model", "model", "--out", "run", *OPTIONS)
    call(*words, cwd=work)
    assert (run / "model" / "model.safetensors").read_bytes() == before
    assert "--clip 1.0, not 0.5" in call(*words, "--clip", 0.5, cwd=work, code=2).stderr


def test_two_ranks_compute_what_one_does(run, work):
    from safetensors.torch import load_file

    words = ["finetune", "classify", "train.tsv", "--dev", "dev.tsv", "--model", "model", "--out", "ranks", *OPTIONS]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "malmoi"]
    finished = subprocess.run(
        [*command, *map(str, words)],
        cwd=work,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert finished.returncode == 0, finished.stderr
    one, two = (
        [json.loads(line) for line in (work / name / "log.jsonl").read_text().splitlines()] for name in ("run", "ranks")
    )
    assert all(abs(a["loss"] - b["loss"]) < 1e-3 for a, b in zip(one, two, strict=True))
    expected, found = (load_file(work / name / "model" / "model.safetensors") for name in ("run", "ranks"))
    assert all((found[name] - tensor).abs().max() < 5e-3 for name, tensor in expected.items())


def test_tag_and_answer(work):
    call(
        "finetune",
        "tag",
        "train.conll",
        "--dev",
        "dev.conll",
        "--model",
        "model",
        "--out",
        "tagged",
        *OPTIONS,
        cwd=work,
    )
    (work / "places.txt").write_text("학생이 부산 거리에서 영화를 보았다.\n", "utf-8")
    [line] = call("predict", "tagged/model", "places.txt", cwd=work).stdout.splitlines()
    [entity] = json.loads(line)["entities"]
    assert (entity["text"], entity["start"], entity["end"], entity["label"]) == ("부산 거리에서", 4, 11, "곳")
    words = ("--model", "model", "--out", "answered", *OPTIONS, "--seq-len", 40)
    call("finetune", "answer", "train.jsonl", "--dev", "dev.jsonl", *words, cwd=work)
    lines = call("predict", "answered/model", "dev.jsonl", cwd=work).stdout.splitlines()
    for example, line in zip(toys.questions(48, seed=9), lines, strict=True):
        answer = json.loads(line)
        assert answer["id"] == example.id and example.context[answer["start"] : answer["end"]] == answer["text"]


def test_info_names_the_labels(run, work):
    assert "classify: 나쁨, 좋음" in call("info", "run/model", cwd=work).stdout


def test_mistakes(refuses, run, work):
    train, model = work / "train.tsv", work / "model"
    refuses("finetune", "poetry", train, "--model", model, "--out", "x", says=["poetry"])
    refuses("finetune", "classify", train, "--model", "nowhere", "--out", "x", says=["nowhere"])
    refuses("finetune", "classify", "absent.tsv", "--model", model, "--out", "x", says=["absent.tsv"])
    refuses("finetune", "classify", train, "--model", model, "--out", "x", "--lr", 0, says=["--lr 0"])
    refuses("finetune", "classify", train, "--model", model, "--out", "x", "--seq-len", 99, says=["--seq-len 99", "48"])
    refuses("finetune", "classify", train, "--model", model, "--out", "x", "--epochs", 0, says=["--epochs 0"])
    refuses(
        *("finetune", "classify", train, "--dev", train, "--model", model, "--out", "x", "--metric", "beauty"),
        says=["--metric beauty", "accuracy"],
    )
    refuses("evaluate", model, train, says=["no head for a task", "malmoi finetune"])
    refuses("predict", run / "model", train, "--task", "tag", says=["--task tag", "classify or pair"])
    refuses("predict", run / "model", train, "-o", "out.xls", says=["out.xls", ".jsonl or .csv"])
    (work / "strange.tsv").write_text("text\tlabel\n학생이 보았다.\t좋은\n친구가 썼다.\t나쁨\n", "utf-8")
    refuses("evaluate", run / "model", work / "strange.tsv", says=["strange.tsv, line 2", "좋은", "좋음"])
