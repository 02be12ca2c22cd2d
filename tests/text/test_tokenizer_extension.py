"""Extension: old ids stay, new pieces are reachable and used, texts without them keep their ids."""

import json

import pytest

from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import load_tokenizer
from malmoi.text.tokenizer_extension import extend_tokenizer
from malmoi.text.tokenizer_training import KINDS, train_tokenizer


@pytest.fixture(scope="module")
def english(data):
    return (data / "wikitext-2" / "valid.txt").read_text("utf-8").splitlines()[:600]


@pytest.fixture(scope="module")
def korean(data):
    lines = next(iter(sorted((data / "petitions").glob("*.jsonl")))).read_text("utf-8").splitlines()[:150]
    return [json.loads(line)["content"] for line in lines]


@pytest.fixture(scope="module")
def tokenizers(data, english, korean):
    own = {kind: train_tokenizer(english + korean, kind=kind, vocab_size=2000) for kind in KINDS}
    return {**own, "bert": load_tokenizer(data / "vocabs" / "bert-base-uncased_vocab.txt")}


def count_tokens(tokenizer, texts):
    return sum(len(encoded.ids) for encoded in tokenizer.encode_batch(texts, specials=False))


@pytest.mark.parametrize("name", [*KINDS, "bert"])
def test_old_ids_stay_and_the_text_needs_fewer_tokens(tokenizers, korean, english, name):
    before = tokenizers[name]
    after = extend_tokenizer(before, korean, add=300)
    assert after.vocab_size == before.vocab_size + 300
    vocabulary = after.backend.get_vocab()
    for piece, id in before.backend.get_vocab().items():
        assert vocabulary[piece] == id
    new = set(range(before.vocab_size, after.vocab_size))
    assert new <= set(vocabulary.values())
    assert after.special_ids == before.special_ids
    assert count_tokens(after, korean) < count_tokens(before, korean)
    used = {id for encoded in after.encode_batch(korean) for id in encoded.ids}
    assert len(new & used) > 0.9 * len(new)
    kept = 0
    for old, extended in zip(before.encode_batch(english), after.encode_batch(english), strict=True):
        if new.isdisjoint(extended.ids):
            assert extended.ids == old.ids
            kept += 1
    assert kept > 10


@pytest.mark.parametrize("name", [*KINDS, "bert"])
def test_an_extended_tokenizer_is_read_by_transformers(tokenizers, korean, name, tmp_path):
    from transformers import AutoTokenizer

    after = extend_tokenizer(tokenizers[name], korean[:30], add=50)
    after.save(tmp_path / "extended")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "extended", local_files_only=True)
    for text in korean[:30]:
        assert after.encode(text).ids == theirs(text)["input_ids"]
    assert load_tokenizer(tmp_path / "extended").fingerprint == after.fingerprint


@pytest.mark.parametrize("name", [*KINDS, "bert"])
def test_given_words_become_whole_pieces(tokenizers, name):
    before = tokenizers[name]
    words = ["말모이", "새말모이", "pretokenizer"]
    after = extend_tokenizer(before, [], add=0, words=words)
    for word in words:
        for text in (word, f"a {word}"):
            ids = after.encode(text, specials=False).ids
            assert ids[-1] >= before.vocab_size
            assert len(ids) == len(after.encode("a", specials=False).ids) * (text != word) + 1
    with pytest.raises(MalmoiError, match="two words"):
        extend_tokenizer(before, [], add=0, words=["two words"])


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_unknown_characters_become_pieces(english, kind):
    before = train_tokenizer(english, kind=kind, vocab_size=1000)
    text = "나는 너를 나는 너를"
    assert before.unk_id in before.encode(text).ids
    after = extend_tokenizer(before, [text] * 5, add=40)
    assert after.unk_id not in after.encode(text).ids
    assert after.unk_id not in after.encode("너는 나를").ids


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_added_after_the_vocabulary_keep_their_ids(english, korean, kind):
    before = train_tokenizer(english, kind=kind, vocab_size=1000)
    before.backend.add_tokens(["<mine>"])
    before = type(before)(before.backend, before.config)
    assert before.id("<mine>") == 1000
    after = extend_tokenizer(before, korean[:20], add=20)
    assert after.id("<mine>") == 1000
    assert after.vocab_size == 1021
    assert 1000 in after.encode("이것은 <mine> 입니다").ids


def test_the_same_text_extends_in_the_same_way(tokenizers, korean):
    one, two = (extend_tokenizer(tokenizers["wordpiece"], korean[:40], add=60) for _ in range(2))
    assert one.fingerprint == two.fingerprint


def test_mistakes_get_a_sentence(tokenizers):
    with pytest.raises(MalmoiError, match="--add"):
        extend_tokenizer(tokenizers["bpe"], ["a"], add=-1)
    with pytest.raises(MalmoiError, match="no text"):
        extend_tokenizer(tokenizers["bpe"], [], add=5)
