"""malmoi fill, info and convert as a user runs them."""

import json
import subprocess
import sys
from dataclasses import asdict

import pytest
import torch
from models import make_model
from safetensors.torch import load_file, save_file

import malmoi as package

TEXT = "학생들이 어제 도서관에서 [MASK] 읽었습니다."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "우리 모델"
    make_model().save(out)
    return out


def test_fill_prints_pieces_and_texts(malmoi, folder):
    text = "[MASK] 책을 [MASK]."
    shown = malmoi("fill", folder, text, "--top", 3)
    assert shown.returncode == 0, shown.stderr
    first, second = (
        [f"{one.probability:7.2%}  {one.token}  →  {one.text}" for one in gap]
        for gap in package.load(folder).fill(text, top=3)
    )
    assert shown.stdout.splitlines() == ["gap 1", *first, "gap 2", *second]


def test_fill_prints_json(malmoi, folder):
    gaps = json.loads(malmoi("fill", folder, TEXT, "--json").stdout)
    assert gaps == [[asdict(one) for one in gap] for gap in package.load(folder).fill(TEXT)]


def test_fill_says_what_is_wrong(refuses, folder, tmp_path):
    refuses("fill", folder, "책을 읽었습니다.", says=["[MASK]"])
    refuses("fill", tmp_path / "nowhere", TEXT, says=["nowhere", "no such folder"])


def test_fill_needs_the_head(refuses, folder, tmp_path):
    pretrained = package.load(folder)
    pretrained.absent = frozenset({"word_head"})
    pretrained.save(tmp_path / "headless")
    refuses("fill", tmp_path / "headless", TEXT, says=["no head for hidden words"])


def test_info_prints_the_figures(malmoi, folder):
    total = sum(parameter.numel() for parameter in package.load(folder).model.parameters())
    shown = malmoi("info", folder)
    assert shown.returncode == 0, shown.stderr
    for words in ("bert", f"{total:,} (without heads", "wordpiece", "model.safetensors", "F32"):
        assert words in shown.stdout
    assert "note:" not in shown.stdout
    figures = json.loads(malmoi("info", folder, "--json").stdout)
    assert figures["parameters"] == total and figures["num_hidden_layers"] == 2
    assert figures["file_bytes"]["model.safetensors"] == (folder / "model.safetensors").stat().st_size


def test_info_counts_the_encoder_as_transformers_does(folder):
    import transformers

    from malmoi.checkpoint.summary import summarise

    for kind, field in (
        (transformers.BertModel, "encoder_parameters"),
        (transformers.BertForPreTraining, "parameters"),
    ):
        assert getattr(summarise(folder), field) == kind.from_pretrained(folder).num_parameters()


def test_info_tells_the_notes(malmoi, folder, tmp_path):
    pretrained = package.load(folder)
    pretrained.absent = frozenset({"next_sentence_head"})
    pretrained.save(tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    save_file(tensors | {"classifier.bias": torch.zeros(2)}, tmp_path / "model" / "model.safetensors")
    shown = malmoi("info", tmp_path / "model").stdout.splitlines()[-2:]
    assert "next sentence is not in the files" in shown[0] and "classifier.bias" in shown[1]


def test_convert_writes_a_new_folder(malmoi, refuses, folder, tmp_path):
    state = load_file(folder / "model.safetensors")
    source = tmp_path / "source"
    package.load(folder).save(source)
    (source / "model.safetensors").unlink()
    torch.save(state, source / "pytorch_model.bin")
    refuses("fill", source, TEXT, says=["malmoi convert"])
    refuses("info", source, says=["malmoi convert"])
    shown = malmoi("convert", source, "--out", tmp_path / "out")
    assert shown.returncode == 0 and "bert" in shown.stdout, shown.stderr
    assert package.load(tmp_path / "out").fill(TEXT) == package.load(folder).fill(TEXT)
    refuses("convert", source, "--out", tmp_path / "out", says=["exists already"])


@pytest.mark.parametrize("command", ["fill", "info", "convert"])
def test_help(malmoi, command):
    shown = malmoi(command, "--help")
    assert shown.returncode == 0 and f"Usage: malmoi {command}" in shown.stdout


@pytest.mark.parametrize(
    "words", [["fill", "nowhere", TEXT], ["info", "nowhere"], ["convert", "nowhere", "--out", "x"]]
)
def test_a_folder_that_is_missing_is_told_without_torch(words):
    program = (
        "import sys; from malmoi.cli import main; sys.argv = ['malmoi', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code, [name for name in ('torch', 'numpy') if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True)
    assert finished.stdout == "2 []\n" and "no such folder" in finished.stderr


def test_fill_reads_a_pipe(malmoi, refuses, folder):
    expected = malmoi("fill", folder, TEXT).stdout
    assert malmoi("fill", folder, "-", stdin=f"{TEXT}\n".encode()).stdout == expected
    refuses("fill", folder, "-", stdin=b"\xff [MASK]", says=["standard input", "UTF-8"])
