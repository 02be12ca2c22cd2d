import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from malmoi.systems.bert import Bert, BertConfig, weight_map
from malmoi.weightmap import WeightMap, linear_rows, row

ROWS = [row("words", "emb.weight"), *linear_rows("layers.{i}.qkv", "l.{i}.q", "l.{i}.k", "l.{i}.v")]


def tensors():
    theirs = {"emb.weight": torch.randn(5, 2)}
    for layer in range(12):
        for part in "qkv":
            theirs[f"l.{layer}.{part}.weight"] = torch.randn(3, 2)
            theirs[f"l.{layer}.{part}.bias"] = torch.randn(3)
    return theirs


@given(st.permutations(ROWS))
def test_reading_and_writing_are_inverse_in_any_order_of_rows(rows):
    theirs = tensors()
    table = WeightMap(rows, 12)
    wanted = {line.ours for line in table.rows}
    matched = table.read(theirs, wanted)
    assert matched.missing == matched.unexpected == []
    assert matched.tensors["layers.11.qkv.weight"].shape == (9, 2)
    back = table.write(matched.tensors)
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)


def test_what_does_not_fit_is_named():
    theirs = tensors()
    del theirs["l.3.k.bias"]
    theirs["stray"] = torch.zeros(1)
    table = WeightMap(ROWS, 12)
    matched = table.read(theirs, {line.ours for line in table.rows})
    assert matched.missing == ["layers.3.qkv.bias"]
    assert matched.unexpected == ["l.3.q.bias", "l.3.v.bias", "stray"]
    with pytest.raises(LookupError, match="forgotten"):
        table.write({"forgotten": torch.zeros(1)})


def test_the_table_of_bert_is_total():
    config = BertConfig(vocab_size=30, hidden_size=8, num_hidden_layers=11, num_attention_heads=2, intermediate_size=16)
    model = Bert(config)
    table = weight_map(config)
    assert sorted(line.ours for line in table.rows) == sorted(name for name, _ in model.named_parameters())
    theirs = table.write(model.state_dict())
    assert table.read(theirs, model.state_dict()).unexpected == []
