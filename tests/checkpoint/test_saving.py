"""What malmoi saves is read by transformers, whole, and computes the same there."""

import errno
import json
import shutil

import pytest
import torch
import transformers
from models import SENTENCES, SMALL, make_model, padded_inputs
from safetensors import safe_open
from safetensors.torch import load_file

import malmoi
from malmoi.checkpoint import folder as folders
from malmoi.checkpoint import replacing
from malmoi.data.folders import digest_file
from malmoi.errors import MalmoiError
from malmoi.text.tokenizer_training import train_tokenizer


@pytest.fixture(scope="module")
def pretrained():
    return make_model()


@pytest.fixture(scope="module")
def folder(pretrained, tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "모델"
    pretrained.save(out, facts={"trained on": "한국어 | Korean"})
    return out


def load_theirs(kind, folder):
    model, info = kind.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["mismatched_keys"]
    return model, set(info["unexpected_keys"])


def test_the_folder_is_complete(folder):
    assert {path.name for path in folder.iterdir()} == set(
        "config.json model.safetensors tokenizer.json tokenizer_config.json special_tokens_map.json vocab.txt "
        "README.md".split()
    )


def test_auto_model_computes_the_same(pretrained, folder):
    theirs, unexpected = load_theirs(transformers.AutoModel, folder)
    assert type(theirs) is transformers.BertModel and all(name.startswith("cls.") for name in unexpected)
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    with torch.no_grad():
        ours = pretrained.model(**inputs, output_hidden_states=True)
        reference = theirs(**inputs, output_hidden_states=True)
    real = inputs["attention_mask"].bool()
    for our_layer, their_layer in zip(ours.hidden_states, reference.hidden_states, strict=True):
        torch.testing.assert_close(our_layer[real], their_layer[real], atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.pooler_output, reference.pooler_output, atol=1e-5, rtol=0)


def test_both_heads_compute_the_same(pretrained, folder):
    theirs, unexpected = load_theirs(transformers.AutoModelForPreTraining, folder)
    assert type(theirs) is transformers.BertForPreTraining and not unexpected
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        ours = pretrained.model(**inputs)
        reference = theirs(**inputs)
    words = pretrained.model.word_logits(ours.last_hidden_state)
    torch.testing.assert_close(words[real], reference.prediction_logits[real], atol=1e-5, rtol=0)
    following = pretrained.model.next_sentence_logits(ours.pooler_output)
    torch.testing.assert_close(following, reference.seq_relationship_logits, atol=1e-5, rtol=0)


def test_masked_lm_computes_the_same(pretrained, folder):
    theirs, unexpected = load_theirs(transformers.AutoModelForMaskedLM, folder)
    assert all("pooler" in name or "seq_relationship" in name for name in unexpected)
    inputs = padded_inputs(pretrained.tokenizer, SENTENCES)
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        words = pretrained.model.word_logits(pretrained.model(**inputs).last_hidden_state)
        torch.testing.assert_close(words[real], theirs(**inputs).logits[real], atol=1e-5, rtol=0)


def test_auto_tokenizer_gives_the_same_ids(pretrained, folder):
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    for text in [*SENTENCES, "모르는 글자 𒀀, [MASK] and English"]:
        assert theirs(text)["input_ids"] == pretrained.tokenizer.encode(text).ids
    assert theirs.mask_token_id == pretrained.tokenizer.mask_id


def test_the_weights_are_stored_as_transformers_stores_them(folder, tmp_path):
    transformers.BertForPreTraining.from_pretrained(folder).save_pretrained(tmp_path / "theirs")
    theirs, ours = load_file(tmp_path / "theirs" / "model.safetensors"), load_file(folder / "model.safetensors")
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[name], ours[name]) for name in ours)
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_the_configuration_is_theirs(pretrained, folder):
    theirs = transformers.AutoConfig.from_pretrained(folder)
    for name in SMALL.__dataclass_fields__:
        assert getattr(theirs, name) == getattr(pretrained.config, name), name
    assert theirs.architectures == ["BertForPreTraining"] and theirs.dtype in ("float32", torch.float32)
    assert json.loads((folder / "config.json").read_text())["torch_dtype"] == "float32"


def test_the_card_tells_the_facts(folder):
    card = (folder / "README.md").read_text("utf-8")
    assert card.startswith("---\n") and "# 모델" in card and "BertForPreTraining" in card
    assert "| trained on | 한국어 \\| Korean |" in card


def test_loading_what_was_saved_changes_nothing(pretrained, folder):
    again = malmoi.load(folder)
    assert again.system == "bert" and again.config == pretrained.config and again.notes == []
    assert again.tokenizer.fingerprint == pretrained.tokenizer.fingerprint
    assert not any(module.training for module in again.model.modules())
    expected = pretrained.model.state_dict()
    assert again.model.state_dict().keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in again.model.state_dict().items())
    assert all(parameter.requires_grad for parameter in again.model.parameters())


def test_training_a_loaded_model_leaves_its_files_alone(folder):
    before = digest_file(folder / "model.safetensors")
    again = malmoi.load(folder)
    with torch.no_grad():
        for parameter in again.model.parameters():
            parameter.add_(1.0)
    assert digest_file(folder / "model.safetensors") == before


def test_saving_again_replaces_the_model(pretrained, tmp_path):
    out = tmp_path / "model"
    make_model(seed=1).save(out)
    pretrained.save(out)
    assert torch.equal(malmoi.load(out).model.pooler.weight, pretrained.model.pooler.weight)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_a_killed_save_left_goes_with_the_next(pretrained, tmp_path):
    pretrained.save(tmp_path / "model")
    shutil.copytree(tmp_path / "model", tmp_path / ".model.partial")
    (tmp_path / ".model.lock").touch()
    pretrained.save(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_loading_puts_back_what_a_killed_save_took_away(pretrained, tmp_path):
    pretrained.save(tmp_path / ".model.old")
    loaded = malmoi.load(tmp_path / "model")
    assert torch.equal(loaded.model.pooler.weight, pretrained.model.pooler.weight)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_files_of_others_are_not_taken_away(pretrained, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(MalmoiError, match=r"other files \(notes\.txt\)"):
        pretrained.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(MalmoiError, match="is a file"):
        pretrained.save(tmp_path / "notes.txt")


def test_a_lone_readme_is_no_model_to_replace(pretrained, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(MalmoiError, match=r"other files \(README\.md\)"):
        pretrained.save(tmp_path)


def test_behind_a_link_the_folder_is_replaced(pretrained, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    pretrained.save(tmp_path / "link")
    pretrained.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real" / "config.json").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_leaves_nothing_half_written(pretrained, tmp_path, monkeypatch, there):
    out = tmp_path / "model"
    if there:
        pretrained.save(out)

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for module, step in ((folders, "save_file"), (replacing, "sync_folder" if there else "publish_folder")):
        monkeypatch.setattr(module, step, fail)
        with pytest.raises(OSError, match="No space"):
            make_model(seed=1).save(out)
        monkeypatch.undo()
        assert [path.name for path in tmp_path.iterdir()] == (["model"] if there else [])
    if there:
        assert torch.equal(malmoi.load(out).model.pooler.weight, pretrained.model.pooler.weight)


def test_new_weights_depend_on_the_seed_only(pretrained):
    tokenizer = pretrained.tokenizer
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = malmoi.create("bert-tiny", tokenizer, seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    second, third = malmoi.create("bert-tiny", tokenizer, seed=5), malmoi.create("bert-tiny", tokenizer, seed=6)
    assert torch.equal(first.model.pooler.weight, second.model.pooler.weight)
    assert not torch.equal(first.model.pooler.weight, third.model.pooler.weight)


def test_a_new_model_fits_its_tokenizer(tmp_path):
    tokenizer = train_tokenizer(SENTENCES, kind="bpe", vocab_size=350)
    made = malmoi.create("bert-tiny", tokenizer)
    assert made.config.vocab_size == tokenizer.vocab_size == made.model.embeddings.words.num_embeddings
    assert made.config.pad_token_id == tokenizer.pad_id
    made.save(tmp_path / "model")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
    assert theirs(SENTENCES[0])["input_ids"] == tokenizer.encode(SENTENCES[0]).ids


def test_the_padding_is_the_tokenizer_s(tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n[MASK]\n[PAD]\n책\n", "utf-8")
    made = malmoi.create("bert-tiny", malmoi.load_tokenizer(tmp_path / "vocab.txt"))
    assert made.config.pad_token_id == 4


def test_an_unknown_preset_is_told(pretrained):
    with pytest.raises(MalmoiError, match="bert-mini"):
        malmoi.create("bert-gigantic", pretrained.tokenizer)
    with pytest.raises(MalmoiError, match="google-bert/bert-base-uncased, fresh weights of that size are bert-base"):
        malmoi.create("BERT-base-uncased", pretrained.tokenizer)
    with pytest.raises(MalmoiError, match="dict"):
        malmoi.create({"hidden_size": 3}, pretrained.tokenizer)
