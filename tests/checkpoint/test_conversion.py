"""Pickled weights become safe files; what a pickle would execute is not executed."""

import copy
import json
import os
import pickle
import shutil
import zipfile

import pytest
import torch
import transformers
from safetensors.torch import load_file

import malmoi
from malmoi.checkpoint.conversion import convert_folder
from malmoi.errors import MalmoiError


@pytest.fixture
def pickled(saved, tmp_path):
    """A folder as it was usual once: pytorch_model.bin with every key the module has, tied ones twice."""
    folder = shutil.copytree(saved, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    state = transformers.BertForPreTraining.from_pretrained(saved).state_dict()
    torch.save(state, folder / "pytorch_model.bin")
    return folder


def assert_same_weights(first, second):
    ours, theirs = load_file(first / "model.safetensors"), load_file(second / "model.safetensors")
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_pickle_becomes_safetensors(pickled, saved, tmp_path):
    converted = convert_folder(pickled, tmp_path / "out")
    assert converted.notes == []
    assert_same_weights(tmp_path / "out", saved)
    assert malmoi.load(tmp_path / "out").tokenizer.fingerprint == converted.tokenizer.fingerprint


def test_the_old_form_of_pickles(pickled, saved, tmp_path):
    state = torch.load(pickled / "pytorch_model.bin")
    torch.save(state, pickled / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    convert_folder(pickled, tmp_path / "out")
    assert_same_weights(tmp_path / "out", saved)


def test_pickles_in_several_files(pickled, saved, tmp_path):
    state = torch.load(pickled / "pytorch_model.bin")
    (pickled / "pytorch_model.bin").unlink()
    names = sorted(state)
    for number, part in enumerate((names[::2], names[1::2])):
        torch.save({name: state[name] for name in part}, pickled / f"part-{number}.bin")
    places = {name: f"part-{index % 2}.bin" for index, name in enumerate(names)}
    (pickled / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    convert_folder(pickled, tmp_path / "out")
    assert_same_weights(tmp_path / "out", saved)


def test_safetensors_are_taken_as_they_are(saved, tmp_path):
    convert_folder(saved, tmp_path / "out")
    assert_same_weights(tmp_path / "out", saved)


class Trap:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("form", ["pickle", "zip", "old"])
def test_a_hostile_pickle_is_not_executed(pickled, tmp_path, form, refuses):
    sprung = tmp_path / "sprung"
    content = {"bert.pooler.dense.weight": Trap(f"touch {sprung}")}
    path = pickled / "pytorch_model.bin"
    if form == "pickle":
        path.write_bytes(pickle.dumps(content, protocol=2))
    else:
        torch.save(content, path, _use_new_zipfile_serialization=form == "zip")
    with pytest.raises(MalmoiError, match=r"pytorch_model\.bin .* nothing of it was executed"):
        convert_folder(pickled, tmp_path / "out")
    if form == "zip":
        refuses("convert", pickled, "--out", tmp_path / "out", says=["pytorch_model.bin", "nothing of it was executed"])
    assert not sprung.exists() and not (tmp_path / "out").exists()
    if form == "pickle":
        pickle.loads(path.read_bytes())
    else:
        torch.load(path, weights_only=False)
    assert sprung.exists()  # the trap works


def test_a_damaged_pickle_is_named(pickled, tmp_path):
    path = pickled / "pytorch_model.bin"
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(MalmoiError, match=r"pytorch_model\.bin is damaged"):
        convert_folder(pickled, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [[1, 2], {"a": 1}, {1: torch.zeros(1)}, torch.zeros(2)])
def test_a_pickle_of_something_else_is_refused(pickled, tmp_path, content):
    torch.save(content, pickled / "pytorch_model.bin")
    with pytest.raises(MalmoiError, match=r"pytorch_model\.bin does not hold"):
        convert_folder(pickled, tmp_path / "out")


def test_a_tensor_that_claims_more_than_its_file_holds_is_refused(pickled, tmp_path):
    torch.save({"bert.pooler.dense.weight": torch.zeros(1).expand(10**6, 10**6)}, pickled / "pytorch_model.bin")
    with pytest.raises(MalmoiError, match=r"bert\.pooler\.dense\.weight is larger"):
        convert_folder(pickled, tmp_path / "out")


def test_nothing_is_overwritten(pickled, saved, tmp_path):
    for out in (saved, pickled / "config.json"):
        with pytest.raises(MalmoiError, match="exists already"):
            convert_folder(pickled, out)


def test_a_folder_without_weights(pickled, tmp_path):
    (pickled / "pytorch_model.bin").unlink()
    with pytest.raises(MalmoiError, match="holds no weights"):
        convert_folder(pickled, tmp_path / "out")


@pytest.mark.parametrize("overlapping", [False, True])
def test_an_archive_that_would_grow_is_not_unpacked(pickled, tmp_path, monkeypatch, overlapping):
    path = pickled / "pytorch_model.bin"
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in packed.items():
            archive.writestr(name, b"\0" * 10**7 if name.endswith("data/0") else part)
    if overlapping:
        # The same bytes under many names: nothing is packed, and yet it grows.
        path.write_bytes(content)
        with zipfile.ZipFile(path, "a") as archive:
            [entry] = [entry for entry in archive.infolist() if entry.filename.endswith("data.pkl")]
            for number in range(1000):
                twin = copy.copy(entry)
                twin.filename = f"{entry.filename}{number}"
                archive.filelist.append(twin)
            archive._didModify = True
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(MalmoiError, match=r"pytorch_model\.bin: [\d,]+ bytes are packed into its [\d,]+"):
        convert_folder(pickled, tmp_path / "out")
