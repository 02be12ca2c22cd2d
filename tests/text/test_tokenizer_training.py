"""Training: what is promised about ids, Unicode, sizes, sameness, and what transformers makes of the saved folder."""

import json
import os
import signal
import subprocess
import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import load_tokenizer
from malmoi.text.tokenizer_training import KINDS, SPECIAL_TOKENS, train_tokenizer

TEXTS = [
    "The café opens early, and the naïve reader reads the daily news there every single morning.",
    "오늘은 날씨가 좋아서 동생과 함께 공원에 갔다. 공원에서 먹은 김밥이 맛있었다!",
    "동생은 공원에서 책을 읽었고, 나는 새로운 낱말을 모았다. 낱말을 모으는 일은 즐겁다.",
    "Reading and writing, writing and reading: 漢字 and かな and 😀 stand beside each other.",
] * 4
ODD = [
    "",
    " ",
    "e\u0301 İ ﬁ \u200b\u00ad",
    "👩‍👩‍👧",
    "a\r\n\tb  c",
    "[MASK] [SEP]x",
    "Ｆｕｌｌ ㎏ ①",
    "ᄒ\u1161\u11ab글",
    "힣갂",
]
PAIRS = [("공원에 갔다", "reading news"), ("a", "공원")]
CASES = [(kind, lowercase) for kind in KINDS for lowercase in (False, True)]


@pytest.fixture(scope="module")
def trained():
    return {
        (kind, lowercase): train_tokenizer(TEXTS, kind=kind, vocab_size=500, lowercase=lowercase)
        for kind, lowercase in CASES
    }


@pytest.fixture(scope="module")
def reloaded(trained, tmp_path_factory):
    """What AutoTokenizer makes of each saved folder: (alone, beside a BERT model)."""
    from transformers import AutoTokenizer

    pairs = {}
    for (kind, lowercase), tokenizer in trained.items():
        alone = tmp_path_factory.mktemp("tokenizer") / "alone"
        beside = alone.with_name("beside")
        tokenizer.save(alone)
        tokenizer.save(beside)
        (beside / "config.json").write_text('{"model_type": "bert", "vocab_size": 500}')
        pairs[kind, lowercase] = [
            AutoTokenizer.from_pretrained(path, local_files_only=True) for path in (alone, beside)
        ]
        assert load_tokenizer(beside).fingerprint == tokenizer.fingerprint
    return pairs


@pytest.mark.parametrize("case", CASES)
def test_special_tokens_come_first(trained, case):
    tokenizer = trained[case]
    assert [tokenizer.token(id) for id in range(5)] == list(SPECIAL_TOKENS.values())
    assert tokenizer.special_ids == {0, 1, 2, 3, 4}
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id) == (
        0,
        1,
        2,
        3,
        4,
    )
    pair = tokenizer.encode("동생", "공원")
    a, b = tokenizer.encode("동생", specials=False).ids, tokenizer.encode("공원", specials=False).ids
    assert pair.ids == [2, *a, 3, *b, 3]
    assert pair.token_type_ids == [0] * (len(a) + 2) + [1] * (len(b) + 1)


@pytest.mark.parametrize("case", CASES)
def test_transformers_reads_the_saved_folder(trained, reloaded, case):
    tokenizer = trained[case]
    for theirs in reloaded[case]:
        for text in TEXTS[:4] + ODD:
            encoded = tokenizer.encode(text)
            expected = theirs(text, return_offsets_mapping=True)
            assert encoded.ids == expected["input_ids"], text
            assert encoded.offsets == expected["offset_mapping"]
        for first, second in PAIRS:
            encoded = tokenizer.encode(first, second)
            expected = theirs(first, second)
            assert encoded.ids == expected["input_ids"]
            assert encoded.token_type_ids == expected["token_type_ids"]
        assert (theirs.mask_token_id, theirs.pad_token_id, theirs.model_max_length) == (4, 0, 512)


@settings(max_examples=40, deadline=None)
@given(text=st.text())
@pytest.mark.parametrize("case", CASES)
def test_any_text_gives_the_ids_of_transformers_and_tidy_offsets(trained, reloaded, case, text):
    encoded = trained[case].encode(text, specials=False)
    assert encoded.ids == reloaded[case][1](text, add_special_tokens=False)["input_ids"]
    words = [word for word in encoded.word_ids if word is not None]
    assert words == sorted(words)
    assert all(0 <= start <= end <= len(text) for start, end in encoded.offsets)


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_byte_level_bpe_gives_back_any_text(trained, text):
    tokenizer = trained["bpe", False]
    ids = tokenizer.encode(text, specials=False).ids
    assert tokenizer.decode(ids, skip_specials=False) == unicodedata.normalize("NFC", text)
    assert tokenizer.unk_id not in ids


@pytest.mark.parametrize("case", CASES)
def test_composed_and_decomposed_hangul_are_the_same(trained, case):
    text = "공원에서 먹은 김밥이 맛있었다"
    tokenizer = trained[case]
    ids = tokenizer.encode(text).ids
    assert tokenizer.encode(unicodedata.normalize("NFD", text)).ids == ids
    assert tokenizer.unk_id not in ids
    assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", KINDS)
def test_lower_casing_strips_accents_and_casing_keeps_them(trained, kind):
    uncased, cased = trained[kind, True], trained[kind, False]
    assert uncased.encode("Café").ids == uncased.encode("cafe").ids
    assert cased.encode("café").ids != cased.encode("cafe").ids
    assert cased.encode("The").ids != cased.encode("the").ids


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_point_at_the_piece(trained, kind):
    text = "  reading 동생은, news"
    tokenizer = trained[kind, False]
    encoded = tokenizer.encode(text, specials=False)
    # A mark of a word's beginning that is a token by itself stands for no text of its own.
    shown = [
        text[slice(*offsets)]
        for id, offsets in zip(encoded.ids, encoded.offsets, strict=True)
        if id != tokenizer.id("▁")
    ]
    assert "".join(shown) == "reading동생은,news"


@pytest.mark.parametrize("kind", KINDS)
def test_the_size_asked_for_is_met(data, kind):
    lines = (data / "wikitext-2" / "valid.txt").read_text("utf-8").splitlines()[:800]
    for size in (1000, 1777):
        assert train_tokenizer(lines, kind=kind, vocab_size=size).vocab_size == size


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_too_small_for_the_size_gives_what_it_has(kind):
    assert 5 < train_tokenizer(["aa ab"] * 3, kind=kind, vocab_size=5000).vocab_size < 300


TRAIN = """
import hashlib, sys
from malmoi.text.tokenizer_training import train_tokenizer
from pathlib import Path
texts = Path(sys.argv[1]).read_text("utf-8").splitlines()
for kind in ("wordpiece", "bpe", "unigram"):
    tokenizer = train_tokenizer(texts, kind=kind, vocab_size=1500, alphabet=300)
    print(hashlib.sha256(tokenizer.backend.to_str(pretty=True).encode()).hexdigest())
"""


def test_every_process_and_any_number_of_threads_train_the_same(data, tmp_path):
    corpus = tmp_path / "corpus.txt"
    lines = next(iter(sorted((data / "petitions").glob("*.jsonl")))).read_text("utf-8").splitlines()[:150]
    corpus.write_text("\n".join(json.loads(line)["content"].replace("\n", " ") for line in lines), "utf-8")
    digests = [
        subprocess.run(
            [sys.executable, "-c", TRAIN, corpus],
            capture_output=True,
            check=True,
            env={**os.environ, "RAYON_NUM_THREADS": threads},
        ).stdout
        for threads in ("1", "2", "2")
    ]
    assert len(digests[0].split()) == 3
    assert digests[0] == digests[1] == digests[2]


@pytest.mark.parametrize("kind", KINDS)
def test_an_iterator_gives_what_a_list_gives(kind):
    once = train_tokenizer(iter(TEXTS), kind=kind, vocab_size=400)
    assert once.fingerprint == train_tokenizer(TEXTS, kind=kind, vocab_size=400).fingerprint


def test_rare_characters_stay_out_and_kept_ones_are_pieces_in_every_place():
    noise = [chr(code) for code in range(0x4E00, 0x4E00 + 500)]
    texts = ["가나다 나다가 다가나 라"] * 50 + noise
    counts = Counter("".join(texts))
    assert len(counts) > 500
    for kind in ("wordpiece", "unigram"):
        tokenizer = train_tokenizer(texts, kind=kind, vocab_size=100, alphabet=4)
        assert tokenizer.unk_id in tokenizer.encode(noise[0]).ids
        for text in ("가", "나가라", "라라라"):
            assert tokenizer.unk_id not in tokenizer.encode(text).ids


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], ["", "  \n"]])
def test_no_text_gets_a_sentence(kind, texts):
    with pytest.raises(MalmoiError, match="no text"):
        train_tokenizer(texts, kind=kind, vocab_size=1000)


@pytest.mark.parametrize(("kind", "smallest"), [("wordpiece", 5 + 26 * 2), ("bpe", 261), ("unigram", 5 + 26 + 1)])
def test_a_size_too_small_names_the_smallest_that_works(kind, smallest):
    texts = ["the quick brown fox jumps over the lazy dog"] * 5
    with pytest.raises(MalmoiError, match=rf"\b{smallest} is the smallest") as mistake:
        train_tokenizer(texts, kind=kind, vocab_size=smallest - 1)
    if kind != "bpe":
        assert "26 distinct characters" in str(mistake.value)
    assert train_tokenizer(texts, kind=kind, vocab_size=smallest).vocab_size == smallest


@pytest.mark.parametrize("options", [{"kind": "x"}, {"alphabet": 0}, {"min_frequency": 0}])
def test_senseless_options_get_a_sentence(options):
    name = "--" + next(iter(options)).replace("_", "-")
    with pytest.raises(MalmoiError, match=name):
        train_tokenizer(TEXTS, **{"kind": "wordpiece", "vocab_size": 500, **options})


def test_a_mistake_in_the_text_comes_through():
    def texts():
        yield "some text"
        raise MalmoiError("corpus.txt, line 2")

    for kind in KINDS:
        with pytest.raises(MalmoiError, match="line 2"):
            train_tokenizer(texts(), kind=kind, vocab_size=500)


INTERRUPTED = """
import random, sys
from malmoi.text.tokenizer_training import train_tokenizer
rng = random.Random(0)
def texts():
    for _ in range(3000):
        yield "".join(rng.choice("abcdefghijklmnop ") for _ in range(1500))
    print("learning", flush=True)
train_tokenizer(texts(), kind="bpe", vocab_size=200_000)
"""


def test_ctrl_c_stops_the_learning():
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"learning\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert b"KeyboardInterrupt" in errors


def test_learning_says_that_it_goes_on(monkeypatch, capsys):
    monkeypatch.setattr("malmoi.text.tokenizer_training._SECONDS_OF_SILENCE", 0.0)
    train_tokenizer(["some words of a text"] * 2000, kind="unigram", vocab_size=40)
    assert "the text is read, learning pieces: 0 s" in capsys.readouterr().err
