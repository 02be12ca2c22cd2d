"""Encoding word by word must give exactly what the tokenizer gives for the whole text."""

import json

import numpy as np
import pytest
from corpora import korean_documents, python_documents
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from malmoi.text.encoding import SentenceEncoder, find_spacing, find_word_starts
from malmoi.text.tokenizer import Tokenizer, load_tokenizer
from malmoi.text.tokenizer_training import train_tokenizer

AWKWARD = [
    "",
    " ",
    "a",
    " leading and trailing ",
    "two  spaces   and four    more",
    "a tab\there and\u00a0a no-break space, an ideographic\u3000one",
    "zero\u200bwidth, soft\u00adhyphen, control\x1fcharacter, delete\x7f",
    "don't stop-believing (it's 3.14!) e-mail@example.org",
    "나는 밥을 먹었다. 밥을 나는 먹었다!",
    "나는 밥을",
    "café cafe\u0301 \u0301alone a \u0301b",
    "中文abc混排 日本語のテキスト 中 文",
    "emoji 👩‍👩‍👧 👍🏽 ok",
    "[CLS] in text [SEP] [MASK]ed [UNK] [PAD]",
    "İstanbul ΣΊΣΥΦΟΣ ß ﬁ ﬃ ½ Å",
    "ไม่มีช่องว่าง ภาษาไทย",
    "a" * 300 + " b",
    "a=\u0338b <\u0338 ≠ a.\u0301b",
    "[[links|like]] {{these}} &amp; <ref name=\"x\">it's</ref> ''bold'' ---- ## ##x",
    "\ufeffbom and \ufffd replacement",
]


@pytest.fixture(scope="module")
def tokenizers_by_name():
    documents = python_documents()[:30] + korean_documents(50)
    trained = {
        f"{kind}-{case}": train_tokenizer(documents, kind=kind, vocab_size=1500, lowercase=case == "uncased")
        for kind in ("wordpiece", "bpe", "unigram")
        for case in ("cased", "uncased")
    }
    plain = Backend(models.BPE(vocab={"a": 0, "b": 1, "ab": 2, "[UNK]": 3}, merges=[("a", "b")], unk_token="[UNK]"))
    plain.normalizer = normalizers.Replace("x", "a b")
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    trained["unknown"] = Tokenizer(plain, {})
    return trained


NAMES = [f"{kind}-{case}" for kind in ("wordpiece", "bpe", "unigram") for case in ("cased", "uncased")] + ["unknown"]


def check_equal(tokenizer, sentences):
    backend = Backend.from_str(tokenizer.backend.to_str())
    backend.encode_special_tokens = True
    encoder = SentenceEncoder(tokenizer)
    for _ in range(2):  # the second time every word is remembered
        encoded = encoder.encode(sentences)
        ends = np.cumsum(encoded.lengths)
        for sentence, begin, end in zip(sentences, ends - encoded.lengths, ends, strict=True):
            whole = backend.encode(sentence, add_special_tokens=False)
            assert encoded.ids[begin:end].tolist() == whole.ids, sentence
            if encoder._spacing != "unknown" and "  " not in sentence:
                continue
            assert encoded.word_starts[begin:end].tolist() == find_word_starts(sentence, whole).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_awkward_sentences(tokenizers_by_name, name):
    check_equal(tokenizers_by_name[name], AWKWARD)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(
    sentences=st.lists(
        st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\n"), max_size=30)
        | st.text(alphabet="ab '\t\u00a0.,1한국中\u0301 ", max_size=20),
        min_size=1,
        max_size=4,
    )
)
def test_any_sentences(tokenizers_by_name, name, sentences):
    check_equal(tokenizers_by_name[name], sentences)


@pytest.mark.parametrize("vocabulary", ["bert-base-uncased", "bert-base-cased", "mbert_cased", "krbert_char16424"])
def test_real_vocabularies_on_real_text(data, vocabulary):
    tokenizer = load_tokenizer(data / "vocabs" / f"{vocabulary}_vocab.txt")
    english = (data / "wikitext-2" / "test.txt").read_text("utf-8").splitlines()
    korean = [
        json.loads(line)["content"].replace("\n", " ")
        for line in (data / "petitions" / "petitions_2017-08.jsonl").read_text("utf-8").splitlines()
    ]
    check_equal(tokenizer, english[:1500] + korean[:300] + AWKWARD)


def word_lists(tokenizer, sentence):
    """The sentence's tokens, grouped into words by the encoder's word starts."""
    encoded = SentenceEncoder(tokenizer).encode([sentence])
    words = []
    for id, start in zip(encoded.ids, encoded.word_starts, strict=True):
        if start:
            words.append([])
        words[-1].append(int(id))
    return [tokenizer.decode(word).strip() for word in words]


@pytest.mark.parametrize("name", ["wordpiece-cased", "bpe-cased", "unigram-cased"])
def test_words_are_words_in_every_script_and_kind(tokenizers_by_name, name):
    tokenizer = tokenizers_by_name[name]
    english = word_lists(tokenizer, "parameterization of descriptors")
    assert [word for word in english if word] == ["parameterization", "of", "descriptors"]
    korean = word_lists(tokenizer, "할머니가 도서관에서 읽었습니다")
    assert [word for word in korean if word] == ["할머니가", "도서관에서", "읽었습니다"]


def test_ideographs_are_words_of_their_own_even_where_bytes_are_pieces(tokenizers_by_name):
    assert word_lists(tokenizers_by_name["bpe-cased"], "中文 words") == ["中", "文", "words"]


def test_pieces_that_share_a_character_stay_together(tokenizers_by_name):
    bpe = tokenizers_by_name["bpe-cased"]
    encoded = SentenceEncoder(bpe).encode(["鷗"])
    assert len(encoded.ids) > 1 and encoded.word_starts.tolist() == [True] + [False] * (len(encoded.ids) - 1)


def test_special_tokens_in_the_text_are_text(tokenizers_by_name):
    tokenizer = tokenizers_by_name["wordpiece-cased"]
    ids = SentenceEncoder(tokenizer).encode(["see [SEP] and [MASK] here"]).ids.tolist()
    assert not {tokenizer.sep_id, tokenizer.mask_id} & set(ids)
    assert tokenizer.sep_id in tokenizer.encode("see [SEP] here", specials=False).ids


def test_forgetting_changes_nothing(tokenizers_by_name, monkeypatch):
    tokenizer = tokenizers_by_name["wordpiece-cased"]
    sentences = [line for document in python_documents()[:10] for line in document.splitlines()]
    expected = SentenceEncoder(tokenizer).encode(sentences).ids
    monkeypatch.setattr("malmoi.text.encoding._WORDS_REMEMBERED", 20)
    encoder = SentenceEncoder(tokenizer)
    parts = [encoder.encode(sentences[begin : begin + 7]) for begin in range(0, len(sentences), 7)]
    assert np.concatenate([part.ids for part in parts]).tolist() == expected.tolist()
    assert len(encoder._words.texts) < 200


def test_an_added_token_with_a_space_is_not_cut(tokenizers_by_name):
    backend = Backend.from_str(tokenizers_by_name["wordpiece-cased"].backend.to_str())
    backend.add_tokens([AddedToken("New York")])
    tokenizer = Tokenizer(backend, {})
    assert find_spacing(json.loads(backend.to_str())) == "unknown"
    assert (
        SentenceEncoder(tokenizer).encode(["in New York now"]).ids.tolist()
        == backend.encode("in New York now", add_special_tokens=False).ids
    )


def test_what_malmoi_trains_is_encoded_word_by_word(tokenizers_by_name):
    for name, tokenizer in tokenizers_by_name.items():
        spacing = find_spacing(json.loads(tokenizer.backend.to_str()))
        assert (spacing == "unknown") == (name == "unknown"), name


def test_nothing_to_encode(tokenizers_by_name):
    encoded = SentenceEncoder(tokenizers_by_name["wordpiece-cased"]).encode([])
    assert len(encoded.ids) == len(encoded.lengths) == 0
