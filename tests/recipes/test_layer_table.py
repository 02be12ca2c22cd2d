"""Entities are counted as CoNLL's scorer does, and the recipe runs on a small model without touching it."""

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


@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        ("O O O", set()),
        ("B-PS I-PS O B-LC", {(0, 2, "PS"), (3, 4, "LC")}),
        ("B-PS B-PS", {(0, 1, "PS"), (1, 2, "PS")}),
        ("O I-PS I-PS", {(1, 3, "PS")}),
        ("B-PS I-LC I-LC", {(0, 1, "PS"), (1, 3, "LC")}),
    ],
)
def test_entities(recipe, tags, entities):
    assert recipe.find_entities(tags.split()) == entities


def test_it_runs(recipe, tmp_path):
    make_model().save(tmp_path / "model")
    sentence = "## c\n학\tB-PS\n생\tI-PS\n이\tO\n \tO\n책\tO\n을\tO\n"
    (tmp_path / "ner.tsv").write_text("\n".join([sentence] * 12), "utf-8")
    assert recipe.read_words(tmp_path / "ner.tsv")[0] == (["학생이", "책을"], ["B-PS", "O"])
    model, file = tmp_path / "model", tmp_path / "ner.tsv"
    words = [sys.executable, str(RECIPE), str(model), str(file), "--train", "8", "--test", "4", "--epochs", "1"]
    finished = subprocess.run([*words, "--last", "2"], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert "| concat of last 2 |" in finished.stdout
