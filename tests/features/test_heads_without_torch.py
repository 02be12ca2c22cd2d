"""A fine-tuned model that was converted answers as it did with torch, in floats and in bytes, and imports no torch."""

import json
import subprocess
import sys

import numpy as np
import pytest
import toys
from toys import prepare, run

import malmoi
from malmoi.features.onnx_export import export_onnx
from malmoi.tasks.inference import predict
from malmoi.tasks.use import open_task

TASKS = ["classify", "several labels", "pair", "regress", "tag", "answer", "choose", "embed"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """For each of some tasks the folder of a model, the one of its floats and the one of its bytes."""
    made = {}

    def make(name):
        if name not in made:
            out = tmp_path_factory.mktemp("heads")
            run(prepare(name, epochs=3), out / "run")
            model = malmoi.load(out / "run" / "model")
            for int8 in (False, True):
                export_onnx(model, out / str(int8), int8=int8, source=out / "run" / "model")
            made[name] = (out / "run" / "model", out / "False", out / "True")
        return made[name]

    return make


def answer(folder, name):
    """The outputs of some examples, and what they are worth."""
    opened = open_task(folder, "embed" if name == "embed" else None, None, None)
    examples = toys.TASKS[name][0](count=40, seed=5)
    predictions = predict(opened.kind, opened.bundle.model, examples, opened.device)
    return predictions, opened.kind.measure(examples, predictions)[opened.kind.metric]


def numbers(prediction):
    if hasattr(prediction, "entities"):
        return [one.score for one in prediction.entities]
    if hasattr(prediction, "candidates"):
        return [prediction.no_answer_score, *[one.score for one in prediction.candidates[:1]]]
    scores = getattr(prediction, "scores", None)
    return [prediction.score] if scores is None else list(scores.values() if hasattr(scores, "values") else scores)


@pytest.mark.parametrize("name", TASKS)
def test_the_same_answers(folders, name):
    torch, floats, whole = folders(name)
    expected, figure = answer(torch, name)
    found, _ = answer(floats, name)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(numbers(other), numbers(one), atol=1e-4)
    # Bytes may tip what is undecided, and nothing else.
    assert answer(whole, name)[1] == pytest.approx(figure, abs=0.1)


def test_the_methods(folders):
    texts = [one.text for one in toys.sentiment(10, seed=5)]
    torch, floats, whole = (malmoi.load(folder) for folder in folders("classify"))
    for light in (floats, whole):
        assert [one.label for one in light.classify(texts)] == [one.label for one in torch.classify(texts)]
        with pytest.raises(malmoi.MalmoiError, match=r"no head for tag \(one for classify\)"):
            light.tag(texts)
    torch, floats, _ = (malmoi.load(folder) for folder in folders("tag"))
    text = "학생이 서울 거리에서 영화를 보았다."
    assert floats.tag([text])[0].tags == torch.tag([text])[0].tags
    torch, floats, _ = (malmoi.load(folder) for folder in folders("answer"))
    question = ("어디에서 그랬나요?", "할머니가 제주도 편지를 들었다.")
    assert floats.answer(*question).answer.text == torch.answer(*question).answer.text
    torch, floats, _ = (malmoi.load(folder) for folder in folders("embed"))
    assert floats.similar(*texts[:2]).score == pytest.approx(torch.similar(*texts[:2]).score, abs=1e-4)


def test_the_commands_import_no_torch(folders, tmp_path):
    _, floats, _ = folders("classify")
    rows = [json.dumps({"text": one.text, "label": one.labels[0]}) for one in toys.sentiment(10, seed=5)]
    (tmp_path / "data.jsonl").write_text("\n".join(rows), "utf-8")
    program = (
        "import sys, malmoi\n"
        "from malmoi.cli import app\n"
        "model = malmoi.load(sys.argv[1])\n"
        "assert len(model.classify(['학생이 훌륭한 영화를 보았다.'])) == 1\n"
        "for words in (['predict', sys.argv[1], 'data.jsonl', '-o', 'out.jsonl'],\n"
        "              ['evaluate', sys.argv[1], 'data.jsonl']):\n"
        "    app(words, exit_on_error=False, result_action='return_value')\n"
        "assert 'torch' not in sys.modules\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, str(floats)], capture_output=True, text=True, cwd=tmp_path
    )
    assert finished.returncode == 0 and "accuracy" in finished.stdout, finished.stderr
    assert len((tmp_path / "out.jsonl").read_text("utf-8").splitlines()) == 10
