"""The documents do not lie: their commands run, both languages show the same ones, their links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from corpora import korean_documents
from toys import sentiment

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTS = [
    "README.md",
    "README.ko.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/add-a-system.md",
    "docs/results.md",
]


def blocks(name, language):
    return [body for found, body in BLOCK.findall((ROOT / name).read_text("utf-8")) if found == language]


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus.txt").write_text("\n\n".join(korean_documents(100)), "utf-8")
    for name, seed in (("reviews", 0), ("dev", 1)):
        lines = [f"{one.text}\t{one.labels[0]}" for one in sentiment(64, seed=seed)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel", *lines]), "utf-8")
    return tmp_path


def test_the_shell_commands_run(corpus):
    commands = blocks("README.md", "sh")[1]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    finished = subprocess.run(
        ["bash", "-ec", commands], cwd=corpus, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert finished.returncode == 0, finished.stderr
    assert "random next" in finished.stdout


def test_the_python_lines_run(corpus):
    program = blocks("README.md", "python")[0] + "\nassert batch.input_ids.shape[0] == 32\n"
    finished = subprocess.run([sys.executable, "-c", program], cwd=corpus, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_the_system_of_the_guide_works(tmp_path):
    program = "\n".join(blocks("docs/add-a-system.md", "python"))
    program += """
from malmoi.checkpoint.bundle import load_bundle
from malmoi.objectives.masked import MASKED
from malmoi.values import Batch
import numpy as np
loaded = load_bundle("narrow")
ids = np.full((2, 8), 5)
batch = Batch(ids, np.zeros_like(ids), None, np.where(np.arange(8) == 3, ids, -100), np.array([0, 1]))
losses = MASKED.task.losses(loaded.model.train(), batch, torch.device("cpu"))
sum(part.total for part in losses.values()).backward()
assert all(parameter.grad is not None for parameter in loaded.model.parameters())
assert torch.equal(loaded.model.embeddings.words.table.weight, narrow.model.embeddings.words.table.weight)
"""
    finished = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def test_both_languages_show_the_same_commands():
    for language in ("python", "text"):
        assert blocks("README.md", language) == blocks("README.ko.md", language)
    english, korean = (
        [line.split("#")[0].rstrip() for block in blocks(name, "sh") for line in block.splitlines()]
        for name in ("README.md", "README.ko.md")
    )
    assert english == korean


def test_both_languages_have_the_same_parts():
    english, korean = ((ROOT / name).read_text("utf-8") for name in ("README.md", "README.ko.md"))
    for mark in ("## ", "- **", "| "):
        assert english.count(f"\n{mark}") == korean.count(f"\n{mark}")


def test_the_opening_commands_are_targets_of_make():
    makefile = (ROOT / "Makefile").read_text()
    for command in blocks("README.md", "sh")[0].splitlines():
        target = command.split("#")[0].removeprefix("make ").strip()
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_and_files_exist(name):
    text = (ROOT / name).read_text("utf-8")
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert "://" in link or (ROOT / name).parent.joinpath(link).exists(), link
    for path in re.findall(r"`((?:malmoi|tests|docs|benchmarks)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"`((?:text|data|objectives|cli)/[\w/]*\.py)`", text):
        assert (ROOT / "malmoi" / path).exists(), path


def test_the_tree_names_what_is_there():
    tree = blocks("README.md", "text")[0]
    packages = {path.name for path in (ROOT / "malmoi").iterdir() if (path / "__init__.py").is_file()}
    assert packages == set(re.findall(r"^  (\w+)/ ", tree, re.MULTILINE))
    modules = {path.name for path in (ROOT / "malmoi").glob("*.py")} - {"__init__.py", "__main__.py"}
    assert modules == set(re.findall(r"\b(\w+\.py)\b", tree))
