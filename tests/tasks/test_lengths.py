"""How long sequences are: as the examples, up to what the model takes; and what is cut is said."""

from collections import Counter

import pytest
import tokenizers
import toys
from toys import prepare, run

from malmoi.tasks.encoding import TextEncoder
from malmoi.tasks.examples import Scored
from malmoi.tasks.kinds import find_seq_len
from malmoi.tasks.lengths import LengthMeter, choose_seq_len, cost_of, describe_cut


@pytest.mark.parametrize(
    ("lengths", "limit", "chosen"),
    [
        ({20: 100}, 512, 128),  # room that nobody needs costs nothing
        ({20: 100}, 64, 64),
        ({20: 50, 300: 50}, 512, 300),
        ({20: 50, 900: 50}, 512, 512),
        ({20: 99, 300: 1}, 512, 128),  # the longest hundredth does not decide
        ({20: 98, 200: 1, 300: 1}, 512, 200),
        ({900: 1}, None, 900),
        ({}, 512, 128),
    ],
)
def test_sequences_are_as_long_as_most_examples(lengths, limit, chosen):
    assert choose_seq_len(lengths, limit) == chosen


def test_what_is_cut_and_what_it_costs():
    lengths = Counter({100: 488, 200: 11, 400: 1})
    assert (cost_of(lengths, 128).cut, cost_of(lengths, 128).tokens) == (12, 48_800 + 12 * 128)
    assert describe_cut(lengths, 400, 512) is None
    assert describe_cut(lengths, 128, 256) == (
        "12 of 500 texts were longer than 128 tokens and cut; --seq-len 256 would cut 1 and compute 1.0 times as many "
        "tokens."
    )
    assert describe_cut(Counter({300: 1}), 100, 512) == (
        "1 of 1 text was longer than 100 tokens and cut; --seq-len 300 would cut none and compute 3.0 times as many "
        "tokens."
    )
    assert describe_cut(Counter({300: 2}), 128, 128).endswith(
        "2 texts were longer than 128 tokens and cut; the model takes no more."
    )


@pytest.fixture(scope="module")
def tokenizer():
    return toys.make_bundle().tokenizer


def test_encoding_cuts_as_the_tokenizer_itself_does(tokenizer):
    long, short = "학생이 서울 영화를 보았다. " * 9, "할머니가"
    texts = [long, short, (long, short), (short, long), (long, long)]
    encoder = TextEncoder(tokenizer, 16)
    cutting = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    cutting.enable_truncation(16, strategy="longest_first")
    assert [one.ids for one in encoder.encode(texts)] == [cutting.encode(*_apart(text)).ids for text in texts]
    assert encoder.lengths == [len(tokenizer.backend.encode(*_apart(text)).ids) for text in texts]
    # Another use of the same tokenizer is not cut.
    assert len(tokenizer.encode(long).ids) > 16


def _apart(text):
    return (text,) if isinstance(text, str) else text


def test_a_vocabulary_is_parsed_once(monkeypatch):
    import malmoi.tasks.encoding as encoding

    parsed = []

    class Counting(encoding._Cutter):
        def __init__(self, backend):
            parsed.append(backend)
            super().__init__(backend)

    fresh = toys.make_bundle().tokenizer
    monkeypatch.setattr(encoding, "_Cutter", Counting)
    for _ in range(3):
        TextEncoder(fresh, 16).encode(["학생이"])
    assert not parsed
    for seq_len in (16, 20, 16):
        TextEncoder(fresh, seq_len).encode(["학생이 서울 " * 20])
        TextEncoder(fresh, seq_len, stride=2).encode_with_offsets(["학생이"])
    assert len(parsed) == 1


def test_fine_tuning_follows_its_examples_and_says_what_it_cuts(tmp_path):
    told = []
    wide = toys.make_bundle(max_position_embeddings=200)
    prepared = prepare("classify", bundle=wide, told=told)
    assert prepared.kind.seq_len == 128 and not any("longer than" in one for one in told)
    prepared = prepare("classify", bundle=wide, told=told, seq_len=8)
    assert prepared.kind.seq_len == 8 and any(
        "192 texts were longer than 8 tokens and cut; --seq-len" in one for one in told
    )


def test_a_folder_that_says_nothing_is_read_to_its_limit():
    bundle = toys.make_bundle(max_position_embeddings=200)
    assert find_seq_len(bundle, "classify", None) == 200
    assert find_seq_len(bundle, "tag", None) == 128  # and on in windows


def test_dev_is_encoded_once(tmp_path, monkeypatch):
    prepared = prepare("classify", count=64, eval_every=2, epochs=2)
    encoded = []
    encode = prepared.kind.encode
    monkeypatch.setattr(prepared.kind, "encode", lambda examples: encoded.append(len(examples)) or encode(examples))
    assert sum(one.evaluation is not None for one in run(prepared, tmp_path / "run")) > 2
    assert encoded == [64]


def test_vectors_are_of_each_text_of_a_pair(tokenizer):
    example = Scored("학생이 서울", "할머니가", None, "")
    meter = LengthMeter(tokenizer)
    assert meter.measure([example], apart=True)[0] < meter.measure([example])[0]
