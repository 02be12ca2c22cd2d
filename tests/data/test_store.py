import json
import shutil

import numpy as np
import pytest
from corpora import korean_documents, python_documents

from malmoi.data.store import ARRAY_FILES, Store
from malmoi.errors import MalmoiError
from malmoi.text.sentences import sentence_splitter
from malmoi.text.tokenizer_training import train_tokenizer


@pytest.fixture
def copy(korean_store, tmp_path):
    """A store of one's own, to damage."""
    return shutil.copytree(korean_store.folder, tmp_path / "store")


def test_a_store_holds_the_documents_sentence_by_sentence(make_store):
    documents = korean_documents(20) + python_documents()[:5]
    store = make_store(documents)
    split = sentence_splitter("rules")
    backend = store.tokenizer.backend
    assert store.manifest.documents == len(documents) == len(store.documents) - 1
    for number, document in enumerate(documents):
        sentences = range(store.documents[number], store.documents[number + 1])
        stored = [store.tokens[store.sentences[s] : store.sentences[s + 1]].tolist() for s in sentences]
        assert stored == [backend.encode(sentence, add_special_tokens=False).ids for sentence in split(document)]
    assert store.sentences[-1] == store.manifest.tokens == len(store.tokens)
    assert store.documents[-1] == store.manifest.sentences == len(store.sentences) - 1


def test_word_bits_are_those_of_the_tokenizer(english_store):
    begins = english_store.begins_word(np.arange(english_store.manifest.tokens))
    pieces = [english_store.tokenizer.token(id) for id in range(english_store.manifest.vocab_size)]
    continues = np.array([piece.startswith("##") for piece in pieces])
    assert (begins == ~continues[english_store.tokens]).all()


def test_two_bytes_a_token_while_they_suffice(english_store):
    sizes = {name: digest.bytes for name, digest in english_store.manifest.files.items()}
    assert (sizes["tokens.bin"] + sizes["words.bin"]) / english_store.manifest.tokens <= 2.2


def test_four_bytes_a_token_where_the_vocabulary_is_large(data, tmp_path):
    from malmoi.data.prepare import prepare_store
    from malmoi.text.reading import Corpus
    from malmoi.text.tokenizer import load_tokenizer

    (tmp_path / "a.txt").write_text("말모이 is a dictionary. 사전을 만들었다.\n", "utf-8")
    tokenizer = load_tokenizer(data / "vocabs" / "mbert_cased_vocab.txt")
    prepare_store(Corpus([tmp_path / "a.txt"]), tokenizer, tmp_path / "store")
    store = Store(tmp_path / "store")
    assert store.tokens.dtype == np.uint32
    assert (
        store.tokens[: store.sentences[1]].tolist() == tokenizer.encode("말모이 is a dictionary.", specials=False).ids
    )


@pytest.mark.parametrize("name", [*ARRAY_FILES, "tokenizer/tokenizer.json"])
def test_flipped_and_missing_bytes_are_found(copy, name):
    path = copy / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(MalmoiError, match=f"{path.name}: damaged"):
        Store(copy)
    path.write_bytes(content[:-1])
    with pytest.raises(MalmoiError, match=rf"{path.name}: damaged \([\d,]+ bytes instead of"):
        Store(copy)
    path.unlink()
    with pytest.raises(MalmoiError, match=f"{path.name}: missing"):
        Store(copy)


def test_a_damaged_manifest_is_named(copy):
    manifest = copy / "store.json"
    whole = manifest.read_text("utf-8")
    for broken in (whole[:-20], "{}", "[]", whole.replace('"files"', '"flies"'), whole.replace("tokens.bin", "t.bin")):
        manifest.write_text(broken, "utf-8")
        with pytest.raises(MalmoiError, match=r"store.json: damaged"):
            Store(copy)


def test_a_store_of_another_version_is_named_as_such(copy):
    manifest = json.loads((copy / "store.json").read_text("utf-8"))
    (copy / "store.json").write_text(json.dumps({**manifest, "format": 99, "malmoi": "9.9.9"}), "utf-8")
    with pytest.raises(MalmoiError, match=r"format 99, made by malmoi 9\.9\.9"):
        Store(copy)


def test_what_is_no_store(tmp_path):
    with pytest.raises(MalmoiError, match="no such folder"):
        Store(tmp_path / "nowhere")
    with pytest.raises(MalmoiError, match="not a token store"):
        Store(tmp_path)


def test_another_tokenizer_is_refused(korean_store):
    other = train_tokenizer(korean_documents(30), kind="wordpiece", vocab_size=300)
    with pytest.raises(MalmoiError, match="prepared with another tokenizer"):
        korean_store.require_tokenizer(other)
    korean_store.require_tokenizer(korean_store.tokenizer)
