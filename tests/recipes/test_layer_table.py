"""The recipe reads characters and words, and runs on a small model without touching it."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from models import make_model

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "layer_table.py"


@pytest.fixture(scope="module")
def recipe():
    spec = spec_from_file_location("layer_table", RECIPE)
    module = module_from_spec(spec)
    sys.modules["layer_table"] = module
    spec.loader.exec_module(module)
    return module


def test_it_runs(recipe, tmp_path):
    make_model().save(tmp_path / "model")
    sentence = "## c\n학\tB-PS\n생\tI-PS\n이\tO\n \tO\n책\tO\n을\tO\n"
    (tmp_path / "ner.tsv").write_text("\n".join([sentence] * 12), "utf-8")
    assert recipe.read_words(tmp_path / "ner.tsv")[0] == (["학생이", "책을"], ["B-PS", "O"])
    (tmp_path / "words.conll").write_text("Kim B-PS\nreads O\n", "utf-8")
    assert recipe.read_words(tmp_path / "words.conll") == [(["Kim", "reads"], ["B-PS", "O"])]
    model, file = tmp_path / "model", tmp_path / "ner.tsv"
    words = [sys.executable, str(RECIPE), str(model), str(file), "--train", "8", "--test", "4", "--epochs", "1"]
    finished = subprocess.run([*words, "--last", "2"], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "| concat of last 2 |" in finished.stdout
