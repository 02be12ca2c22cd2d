"""A run of pre-training that is stopped, changed or damaged, and taken up again as its user would."""

import json
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest

OPTIONS = {"--batch-size": 8, "--seq-len": 48, "--save-every": 4, "--eval-every": 6, "--eval-share": 0.05, "--seed": 7}


def spell(options):
    return [str(word) for pair in options.items() for word in pair]


@pytest.fixture(scope="module")
def start(korean_store, small):
    return [sys.executable, "-m", "malmoi", "pretrain", str(korean_store.folder), "--model", str(small)]


@pytest.fixture(scope="module")
def command(start):
    return [*start, *spell(OPTIONS)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory, command):
    folder = tmp_path_factory.mktemp("finished")
    subprocess.run([*command, "--steps", "12", "--out", "run"], cwd=folder, check=True, capture_output=True)
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    """A copy of a finished run of twelve steps, to be changed."""
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def go_on(start, tmp_path):
    """Run the command again with other options, and return what it said."""

    def go(*, steps=12, code=0, **options):
        chosen = OPTIONS | {f"--{name.replace('_', '-')}": value for name, value in options.items()}
        words = [*start, *spell(chosen), "--steps", str(steps), "--out", "run"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr

    return go


def records_of(run):
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


def rates_of(run):
    return [record["learning_rate"] for record in records_of(run)]


def weights_of(run):
    return (run / "model" / "model.safetensors").read_bytes()


def damage(path):
    content = bytearray(path.read_bytes())
    content[-5] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_leaves_a_model_and_a_report_marked_unfinished(command, malmoi, tmp_path, number):
    words = [*command, "--steps", "100000", "--out", "run"]
    running = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    log = tmp_path / "run" / "log.jsonl"
    while not log.exists() or log.read_bytes().count(b"\n") < 3:
        time.sleep(0.01)
        assert running.poll() is None
    running.send_signal(number)
    said = running.communicate()[1]
    assert running.returncode == 128 + number and "Traceback" not in said
    assert "run/model" in said and "same command" in said and "of 100,000" in said
    assert "unfinished" in (tmp_path / "run" / "model" / "README.md").read_text("utf-8")
    assert "Unfinished: stopped after step" in (tmp_path / "run" / "report.html").read_text("utf-8")
    # The folder of the run serves as that of its model, wherever one is asked for.
    filled = malmoi("fill", "run", "나는 [MASK] 먹었다.")
    assert filled.returncode == 0 and filled.stdout == malmoi("fill", "run/model", "나는 [MASK] 먹었다.").stdout
    assert "note: unfinished: stopped after step" in malmoi("info", "run").stdout


def test_the_folder_of_a_run_is_taken_for_its_model(run, malmoi, korean_store, tmp_path):
    (tmp_path / "texts.txt").write_text("나는 밥을 먹었다.\n고양이가 잔다.\n", "utf-8")
    (tmp_path / "examples.tsv").write_text("text\tlabel\n나는 먹었다.\ta\n고양이가 잔다.\tb\n" * 4, "utf-8")
    small = ("--batch-size", 4, "--seq-len", 16)
    for words in (
        ("embed", "run", "texts.txt", "-o", "vectors.npy"),
        ("info", "run"),
        ("convert", "run", "--out", "converted"),
        ("check", "classify", "examples.tsv", "--model", "run"),
        ("finetune", "classify", "examples.tsv", "--model", "run", "--epochs", 1, *small, "--out", "tuned"),
        ("predict", "tuned", "examples.tsv", "-o", "answers.jsonl"),
        ("evaluate", "tuned", "examples.tsv"),
        ("pretrain", korean_store.folder, "--model", "run", "--steps", 1, *small, "--out", "more"),
    ):
        done = malmoi(*words)
        assert done.returncode == 0, f"{words}: {done.stderr}"


def test_a_finished_model_is_not_called_unfinished(finished):
    assert "nfinished" not in (finished / "model" / "README.md").read_text("utf-8")
    assert "nfinished" not in (finished / "report.html").read_text("utf-8")


def test_more_steps_go_on_with_a_finished_run_and_its_rate_follows(run, go_on, command, tmp_path_factory):
    before = rates_of(run)
    said = go_on(steps=20)
    assert "--steps 20: the run had 12; from step 12 on" in said
    rates = rates_of(run)
    assert rates[:12] == before and rates[12] > rates[11]
    # From there on the rate is that of a run that was to have twenty from the beginning.
    other = tmp_path_factory.mktemp("twenty")
    subprocess.run([*command, "--steps", "20", "--out", "run"], cwd=other, check=True, capture_output=True)
    assert rates[12:] == rates_of(other / "run")[12:]


def test_steps_that_were_added_are_repeated_exactly(run, go_on):
    go_on(steps=18)
    after = weights_of(run), rates_of(run)
    for name in ("step-000018", "step-000016"):
        damage(run / "checkpoints" / name / "state.safetensors")
    said = go_on(steps=18)
    assert "no checkpoint is left; the run starts from the beginning" in said
    assert (weights_of(run), rates_of(run)) == after  # the first twelve with the rates of twelve


def test_fewer_steps_than_are_made_are_refused(run, go_on):
    assert "--steps 5: 12 steps are made already" in go_on(steps=5, code=2)


def test_what_the_result_does_not_depend_on_may_differ(run, go_on, tmp_path):
    weights = weights_of(run)
    for name in ("step-000012", "step-000008"):
        damage(run / "checkpoints" / name / "state.safetensors")
    go_on(save_every=5, keep=1, eval_every=4, eval_batches=2, threads=1)
    assert weights_of(run) == weights
    assert [path.name for path in (run / "checkpoints").glob("step-??????")] == ["step-000012"]
    go_on(micro_batch=4)
    for option, value in {"lr": 0.1, "seq_len": 32, "eval_share": 0.1, "mask_share": 0.3}.items():
        said = go_on(**{option: value}, code=2)
        assert f"--{option.replace('_', '-')} " in said and f"not {value}" in said and "training." not in said


def test_damaged_checkpoints_are_set_aside_and_good_ones_kept(run, go_on):
    """With two damaged newest ones and --keep 2, each new one was deleted at once."""
    go_on(keep=3, steps=16)
    for name in ("step-000016", "step-000012"):
        damage(run / "checkpoints" / name / "state.safetensors")
    said = go_on(steps=16, code=0)
    assert "state.safetensors: damaged" in said and "going on after step 8" in said
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["step-000012", "step-000012.damaged", "step-000016", "step-000016.damaged"]


def test_another_store_with_the_same_tokens_is_another_run(make_store, small, tmp_path, malmoi, korean_store, run):
    from malmoi.data.prepare import prepare_store
    from malmoi.text.reading import Corpus

    source = korean_store.folder.parent / "corpus.jsonl"
    other = tmp_path / "other"
    prepare_store(Corpus([source]), korean_store.tokenizer, other, sentences="lines", workers=1)
    assert (other / "tokens.bin").read_bytes() == (korean_store.folder / "tokens.bin").read_bytes()
    done = malmoi("pretrain", other, "--model", small, *spell(OPTIONS), "--steps", 12, "--out", "run")
    assert done.returncode == 2 and "another store" in done.stderr


def test_weights_that_are_not_finite_are_never_saved(go_on, tmp_path):
    said = go_on(lr=1e38, eval_every=0, steps=1, code=2)
    assert "not finite" in said and "--lr" in said
    assert not (tmp_path / "run" / "model").exists()
    assert not list((tmp_path / "run").glob("checkpoints/step-*"))


def test_killed_while_its_configuration_was_written(go_on, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json.partial").write_text('{"malmoi": ')
    (tmp_path / "run" / "lock").write_text("")
    go_on(steps=2)
    assert (tmp_path / "run" / "model").is_dir()


def test_a_damaged_log_loses_lines_and_nothing_else(run, go_on):
    weights = weights_of(run)
    lines = (run / "log.jsonl").read_bytes().splitlines(keepends=True)
    lines[2] = b'{"step": 2, "loss": NaN}\n'
    lines[5] = b"\xff\xfe\x00 not JSON\n"
    lines[7] = b"17\n"
    (run / "log.jsonl").write_bytes(b"".join(lines))
    said = go_on(steps=16)
    assert "log.jsonl: 3 damaged lines are left out" in said
    assert [record["step"] for record in records_of(run)] == [0, 1, 3, 4, 6, *range(8, 16)]
    assert weights_of(run) != weights and (run / "report.html").is_file()


def test_tensorboard_shows_no_step_twice(run, go_on):
    damage(run / "checkpoints" / "step-000012" / "state.safetensors")
    go_on()
    assert sorted(step for path in run.glob("events.*") for step in _event_steps(path)) == list(range(12))


def _event_steps(path):
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = data[12 : 12 + length]
        if event[9] == 0x10:  # the field of the step; all are below 128
            yield event[10]
        data = data[16 + length :]


def test_minutes_decide_how_many_steps(command, tmp_path):
    words = [*command, "--minutes", "0.02", "--out", "run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "--minutes 0.02: about" in done.stderr, done.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    made = len(records_of(tmp_path / "run"))
    assert made == config["course"]["turns"][-1][1] and config["course"]["minutes"] == 0.02
    again = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0 and f"all {made:,} steps are made" in again.stderr


def test_mistaken_budgets(refuses, korean_store, small):
    words = ("pretrain", korean_store.folder, "--model", small, "--seq-len", 48, "--out", "x")
    refuses(*words, "--minutes", -1, says=["--minutes -1"])
    refuses(*words, "--minutes", "nan", says=["--minutes nan"])
    refuses(*words, "--threads", 0, says=["--threads 0"])
