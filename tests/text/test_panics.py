"""A pattern that makes the tokenizers library panic, which it does with an exception that nothing usual catches."""

import json

import pytest

import malmoi
from malmoi.errors import MalmoiError
from malmoi.features.sequences import SequenceMaker
from malmoi.tasks.encoding import TextEncoder
from malmoi.tasks.examples import Classified
from malmoi.tasks.lengths import LengthMeter
from malmoi.text.encoding import SentenceEncoder
from malmoi.text.panics import catch_panics

TEXT = "a" * 40 + "b"
SAYS = r"^the tokenizer makes the tokenizers library fail \(.*retry.*\): .* a pattern that takes too long; use another"


@pytest.fixture
def folder(tmp_path):
    cut = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    vocabulary = {name: number for number, name in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])}
    pipeline = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": cut,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(pipeline))
    return tmp_path


def test_every_way_to_encode_says_what_it_is(folder):
    tokenizer = malmoi.load_tokenizer(folder)
    assert tokenizer.encode("a").ids  # harmless texts are read
    for encode in (
        tokenizer.encode,
        lambda text: tokenizer.encode_batch([text, text]),
        lambda text: SentenceEncoder(tokenizer).encode([text]),
        lambda text: SequenceMaker(tokenizer, 64).encode([text], 0),
        lambda text: TextEncoder(tokenizer, 64).encode([text]),
        lambda text: TextEncoder(tokenizer, 64).encode_with_offsets([text]),
        lambda text: LengthMeter(tokenizer).measure([Classified(text, None, None, "")]),
    ):
        with pytest.raises(MalmoiError, match=SAYS):
            encode(TEXT)


def test_on_the_command_line_it_is_one_sentence(folder, tmp_path, refuses):
    (tmp_path / "corpus.txt").write_text(TEXT)
    refuses("prepare", "corpus.txt", "--tokenizer", folder, "--out", "store", says=["takes too long"])
    assert not (tmp_path / "store").exists()


def test_a_panic_while_the_files_are_read_names_them(folder):
    pipeline = json.loads((folder / "tokenizer.json").read_text())
    # The library normalizes an added token when it is added.
    pipeline["normalizer"] = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "x"}
    added = {"id": 6, "content": TEXT, "single_word": False, "lstrip": False, "rstrip": False, "special": False}
    pipeline["added_tokens"] = [{**added, "normalized": True}]
    (folder / "tokenizer.json").write_text(json.dumps(pipeline))
    with pytest.raises(MalmoiError, match=str(folder)):
        malmoi.load_tokenizer(folder)


def test_nothing_else_is_taken_for_a_panic():
    with pytest.raises(KeyboardInterrupt), catch_panics():
        raise KeyboardInterrupt
