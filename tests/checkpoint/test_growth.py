"""A model goes on with an extended tokenizer."""

import copy
import json

import pytest
import torch
from models import SENTENCES, make_model, padded_inputs

from malmoi.checkpoint.bundle import Bundle
from malmoi.checkpoint.growth import grow_vocabulary
from malmoi.data.prepare import prepare_store
from malmoi.errors import MalmoiError
from malmoi.text.reading import Corpus
from malmoi.text.tokenizer import Tokenizer
from malmoi.text.tokenizer_extension import extend_tokenizer
from malmoi.text.tokenizer_training import train_tokenizer

NEW = "도서관사진을"  # of pieces that are known
UNKNOWN = "qz"  # of letters that are not


@pytest.fixture
def bundle() -> Bundle:
    return make_model()


@pytest.fixture
def extended(bundle):
    return extend_tokenizer(bundle.tokenizer, [], add=0, words=[NEW, UNKNOWN])


def test_what_was_known_stays(bundle, extended):
    inputs = padded_inputs(bundle.tokenizer, SENTENCES)
    before = bundle.model(**inputs)
    logits = bundle.model.word_logits(before.last_hidden_state)
    old = bundle.tokenizer.vocab_size
    added = grow_vocabulary(bundle, extended)
    assert added == extended.vocab_size - old > 0 and bundle.config.vocab_size == extended.vocab_size
    after = bundle.model(**inputs)
    assert torch.equal(after.last_hidden_state, before.last_hidden_state)
    torch.testing.assert_close(bundle.model.word_logits(after.last_hidden_state)[..., :old], logits)


def test_a_new_piece_begins_as_the_mean_of_its_parts(bundle, extended):
    parts = bundle.tokenizer.encode(NEW, specials=False).ids
    assert len(parts) > 1 and bundle.tokenizer.unk_id not in parts
    table, bias = bundle.model.embeddings.words.weight.detach().clone(), bundle.model.word_head.bias.detach().clone()
    grow_vocabulary(bundle, extended)
    id_ = extended.id(NEW)
    torch.testing.assert_close(bundle.model.embeddings.words.weight[id_].detach(), table[parts].mean(dim=0))
    torch.testing.assert_close(bundle.model.word_head.bias[id_].detach(), bias[parts].mean())
    unknown = bundle.model.embeddings.words.weight[extended.id(UNKNOWN)]
    assert torch.isfinite(unknown).all() and unknown.abs().sum() > 0


def test_rows_that_padded_the_table_are_used(bundle, extended):
    """Public checkpoints round their tables up; new pieces take those rows before the table grows."""
    from dataclasses import replace

    config = replace(bundle.config, vocab_size=bundle.config.vocab_size + 64)
    padded = Bundle(bundle.system, config, bundle.tokenizer, type(bundle.model)(config).eval())
    parts = bundle.tokenizer.encode(NEW, specials=False).ids
    expected = padded.model.embeddings.words.weight[parts].mean(dim=0).detach()
    grow_vocabulary(padded, extended)
    assert padded.config.vocab_size == config.vocab_size
    torch.testing.assert_close(padded.model.embeddings.words.weight[extended.id(NEW)].detach(), expected)


def test_other_tokenizers_are_refused(bundle):
    other = train_tokenizer(["전혀 다른 글입니다. 아무 관계도 없는 글입니다."] * 3, kind="wordpiece", vocab_size=60)
    with pytest.raises(MalmoiError, match=r"not with an extension of it \(the piece .* has another id or is gone\)"):
        grow_vocabulary(bundle, other)
    description = json.loads(bundle.tokenizer.backend.to_str())
    description["normalizer"] = {"type": "Lowercase"}
    backend = type(bundle.tokenizer.backend).from_str(json.dumps(description))
    with pytest.raises(MalmoiError, match="normalizer differ"):
        grow_vocabulary(bundle, Tokenizer(backend, copy.copy(bundle.tokenizer.config)))


def test_pre_training_goes_on_with_new_pieces(bundle, extended, malmoi, refuses, tmp_path):
    bundle.save(tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("\n\n".join(SENTENCES * 20), "utf-8")
    prepare_store(Corpus([tmp_path / "corpus.txt"]), extended, tmp_path / "store", workers=1)
    words = ("pretrain", "store", "--model", "model", "--steps", 3, "--batch-size", 4, "--seq-len", 32, "--out", "run")
    finished = malmoi(*words)
    assert finished.returncode == 0, finished.stderr
    assert f"grows by {extended.vocab_size - bundle.tokenizer.vocab_size} pieces" in finished.stderr
    again = malmoi(*words)
    assert again.returncode == 0 and "all 3 steps are made" in again.stderr

    import transformers

    model = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "run" / "model")
    assert model.config.vocab_size == len(tokenizer) == extended.vocab_size
