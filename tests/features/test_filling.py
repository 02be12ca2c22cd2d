"""Gaps are filled with what transformers would say, and the text stays the user's own."""

import pytest
import torch
import transformers
from models import SMALL, make_model

import malmoi
from malmoi.errors import MalmoiError
from malmoi.text.tokenizer_training import train_tokenizer

TEXT = "학생들이 어제  도서관에서 [MASK] 읽었습니다."


@pytest.fixture(scope="module")
def pretrained():
    return make_model()


def test_the_pieces_are_those_of_transformers(pretrained, tmp_path):
    pretrained.save(tmp_path / "model")
    pipeline = transformers.pipeline("fill-mask", model=str(tmp_path / "model"), top_k=7, device="cpu")
    [ours] = malmoi.load(tmp_path / "model").fill(TEXT, top=7)
    theirs = pipeline(TEXT)
    assert [one.id for one in ours] == [one["token"] for one in theirs]
    for our, their in zip(ours, theirs, strict=True):
        assert our.probability == pytest.approx(their["score"], abs=1e-5)
        assert our.token == pretrained.tokenizer.token(our.id)


def test_a_list_for_each_gap(pretrained):
    text = "[MASK] 어제 [MASK] 책을 [MASK]."
    gaps = pretrained.fill(text, top=3)
    assert [len(gap) for gap in gaps] == [3, 3, 3]
    for gap in gaps:
        assert [one.probability for one in gap] == sorted((one.probability for one in gap), reverse=True)
        assert all(one.text.count("[MASK]") == 2 for one in gap if one.token != "[MASK]")
    whole = pretrained.fill(text, top=10**6)[0]
    assert sum(one.probability for one in whole) == pytest.approx(1, abs=1e-5)


def test_the_text_around_the_gap_stays(pretrained):
    [gap] = pretrained.fill(TEXT, top=pretrained.config.vocab_size)
    assert len(gap) == pretrained.config.vocab_size
    continued = [one for one in gap if one.token.startswith("##")]
    whole = [one for one in gap if not one.token.startswith(("##", "["))]
    assert continued and whole
    assert all(one.text == f"학생들이 어제  도서관에서{one.token[2:]} 읽었습니다." for one in continued)
    assert all(one.text == f"학생들이 어제  도서관에서 {one.token} 읽었습니다." for one in whole)


def test_byte_level_pieces_are_shown_as_text(pretrained):
    tokenizer = train_tokenizer(["the cat sat on the mat. the dog sat on the cat."] * 5, kind="bpe", vocab_size=300)
    made = malmoi.create(SMALL, tokenizer)
    mask = tokenizer.token(tokenizer.mask_id)
    [gap] = made.fill(f"the {mask} sat", top=made.config.vocab_size)
    texts = {one.token: one.text for one in gap}
    assert texts["Ġcat"] == "the cat sat"


def test_padding_of_the_vocabulary_is_never_an_answer(pretrained):
    from dataclasses import replace

    wide = replace(pretrained.config, vocab_size=pretrained.config.vocab_size + 64)
    model = malmoi.Pretrained("bert", wide, pretrained.tokenizer, type(pretrained.model)(wide).eval())
    with torch.no_grad():
        model.model.word_head.bias[pretrained.config.vocab_size :] = 100.0
    assert all(one.id < pretrained.config.vocab_size for one in model.fill(TEXT)[0])


def test_what_cannot_be_filled_is_told(pretrained):
    with pytest.raises(MalmoiError, match=r"no gap to fill; write \[MASK\]"):
        pretrained.fill("학생들이 책을 읽었습니다.")
    with pytest.raises(MalmoiError, match="longer than the model's 48 positions"):
        pretrained.fill("책을 " * 60 + "[MASK]")
    with pytest.raises(MalmoiError, match="--top 0"):
        pretrained.fill(TEXT, top=0)
    headless = malmoi.Pretrained(
        "bert", pretrained.config, pretrained.tokenizer, pretrained.model, absent=frozenset({"word_head"})
    )
    with pytest.raises(MalmoiError, match="no head for hidden words"):
        headless.fill(TEXT)
