"""Loading and saving: the same ids as transformers, whatever form the files have."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import load_tokenizer

GOLDEN = [
    "this is a input",
    "unaffable don't Café naïve ÀÉÎ",
    "나는 밥을 먹었다",
    "a" * 100,
    "a" * 101,
    "ab\u200bc x\u00a0y 中文abc がぎ",
    "\ufffd\x00a\u2028b\tc\r\nd",
    "👩‍👩‍👧 😀 e\u0301 İstanbul ﬁ",
    "[CLS] [MASK] [SEP] [mask]",
    "",
]
VOCABULARIES = {
    "bert-base-uncased_vocab.txt": True,
    "bert-base-cased_vocab.txt": False,
    "mbert_cased_vocab.txt": False,
    "krbert_char16424_vocab.txt": False,
    "kpfbert_vocab.txt": False,
    "koelectra-v1v2_32200_vocab.txt": False,
}
SMALL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##a", "##b", "ab", "é", "e"]


@pytest.fixture(scope="module")
def real_texts(data):
    lines = (data / "wikitext-2" / "test.txt").read_text("utf-8").splitlines()
    petitions = []
    for path in sorted((data / "petitions").glob("*.jsonl")):
        petitions += [json.loads(line)["content"] for line in path.read_text("utf-8").splitlines()]
    assert len(petitions) > 1000
    return lines + petitions[:1000] + GOLDEN


@pytest.fixture
def folder(tmp_path):
    """A folder with the small vocabulary as vocab.txt, and whatever JSON files a test wants beside it."""

    def make(pieces=SMALL, **files):
        (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
        return tmp_path

    return make


@pytest.mark.parametrize("name", VOCABULARIES)
def test_every_id_of_a_real_vocabulary_equals_transformers(data, real_texts, name, tmp_path):
    from transformers import BertTokenizer

    lowercase = VOCABULARIES[name]
    shutil.copy(data / "vocabs" / name, tmp_path / "vocab.txt")
    theirs = BertTokenizer.from_pretrained(
        tmp_path, do_lower_case=lowercase, strip_accents=None if lowercase else False, local_files_only=True
    )
    ours = load_tokenizer(data / "vocabs" / name)
    encodings = ours.encode_batch(real_texts)
    for text, encoded, ids in zip(real_texts, encodings, theirs(real_texts)["input_ids"], strict=True):
        assert encoded.ids == ids, text


def test_golden_pieces(data):
    tokenizer = load_tokenizer(data / "vocabs" / "bert-base-uncased_vocab.txt")

    def pieces(text):
        return [tokenizer.token(id) for id in tokenizer.encode(text, specials=False).ids]

    assert tokenizer.encode("this is a input").ids == [101, 2023, 2003, 1037, 7953, 102]
    assert pieces("unaffable") == ["una", "##ffa", "##ble"]
    assert pieces("don't") == ["don", "'", "t"]
    assert pieces("나는")[:2] == ["ᄂ", "##ᅡ"]
    assert pieces("a" * 101) == ["[UNK]"]
    assert "[UNK]" not in pieces("a" * 100)
    assert pieces("ab\u200bc") == ["abc"]
    assert pieces("x\u00a0y") == ["x", "y"]
    assert pieces("中文abc") == ["中", "文", "abc"]


def test_gpt2_equals_transformers(data, real_texts, tmp_path):
    from transformers import GPT2Tokenizer

    shutil.copy(data / "vocabs" / "gpt2_encoder.json", tmp_path / "vocab.json")
    shutil.copy(data / "vocabs" / "gpt2_vocab.bpe", tmp_path / "merges.txt")
    theirs = GPT2Tokenizer.from_pretrained(tmp_path, local_files_only=True)
    ours = load_tokenizer(tmp_path)
    assert ours.kind == "bpe" and ours.vocab_size == 50257 and ours.mask_id is None and ours.eos_id == 50256
    texts = real_texts[::10] + GOLDEN
    for text, encoded, ids in zip(texts, ours.encode_batch(texts), theirs(texts)["input_ids"], strict=True):
        assert encoded.ids == ids, text
    ours.save(tmp_path / "saved")
    assert load_tokenizer(tmp_path / "saved").fingerprint == ours.fingerprint


@pytest.mark.parametrize("do_lower_case", [True, False, None])
@pytest.mark.parametrize("strip_accents", [True, False, None])
@pytest.mark.parametrize("tokenizer_class", ["BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast"])
@pytest.mark.parametrize("beside_a_model", [True, False])
def test_files_that_disagree_are_read_as_transformers_reads_them(
    folder, tmp_path, do_lower_case, strip_accents, tokenizer_class, beside_a_model
):
    from transformers import AutoTokenizer

    pieces = [*SMALL, "A", "B", "##A", "##B"]
    load_tokenizer(folder(pieces, tokenizer_config={"do_lower_case": False})).save(tmp_path / "cased")
    path = tmp_path / "cased" / "tokenizer_config.json"
    config = {**json.loads(path.read_text()), "tokenizer_class": tokenizer_class, "strip_accents": strip_accents}
    config["do_lower_case"] = do_lower_case
    if do_lower_case is None:
        del config["do_lower_case"]
    path.write_text(json.dumps(config))
    if beside_a_model:
        (tmp_path / "cased" / "config.json").write_text('{"model_type": "bert"}')
    ours = load_tokenizer(tmp_path / "cased")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "cased", local_files_only=True)
    for text in ["abAB é É", "[MASK] [mask]", "Ab"]:
        assert ours.encode(text).ids == theirs(text)["input_ids"]


def test_the_model_beside_decides_where_no_class_is_named(folder, tmp_path):
    from transformers import AutoTokenizer

    load_tokenizer(folder(tokenizer_config={"do_lower_case": False})).save(tmp_path / "bare")
    (tmp_path / "bare" / "tokenizer_config.json").unlink()
    (tmp_path / "bare" / "config.json").write_text('{"model_type": "bert"}')
    theirs = AutoTokenizer.from_pretrained(tmp_path / "bare", local_files_only=True)
    assert load_tokenizer(tmp_path / "bare").encode("AB é").ids == theirs("AB é")["input_ids"]


@pytest.mark.parametrize("saved_as", ["text", "object"])
@pytest.mark.parametrize("where", ["tokenizer_config", "special_tokens_map"])
def test_roles_are_found_wherever_they_are_written(folder, saved_as, where):
    pieces = ["<nothing>", "<what>", "<from>", "<to>", "<gap>", "a"]
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    roles = dict(zip(names, pieces, strict=False))
    if saved_as == "object":
        roles = {role: {"content": token, "lstrip": False, "normalized": False} for role, token in roles.items()}
    tokenizer = load_tokenizer(folder(pieces, **{where: roles}))
    ids = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    assert ids == (0, 1, 2, 3, 4)
    assert tokenizer.special_ids == {0, 1, 2, 3, 4}
    assert tokenizer.encode("a<gap>").ids == [2, 5, 4, 3]


def test_a_tokenizer_json_alone_finds_its_roles_by_their_names(folder, tmp_path):
    load_tokenizer(folder()).save(tmp_path / "full")
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "full" / "tokenizer.json", tmp_path / "alone")
    tokenizer = load_tokenizer(tmp_path / "alone" / "tokenizer.json")
    assert (tokenizer.pad_id, tokenizer.mask_id, tokenizer.config["tokenizer_class"]) == (
        0,
        4,
        "PreTrainedTokenizerFast",
    )


def test_case_is_seen_from_the_pieces(folder):
    assert load_tokenizer(folder(SMALL)).encode("AB", specials=False).ids == [9]
    assert load_tokenizer(folder([*SMALL, "A"])).encode("AB", specials=False).ids == [1]
    assert load_tokenizer(folder([*SMALL, "가"])).encode("가", specials=False).ids == [len(SMALL)]


def test_baked_in_truncation_and_padding_do_not_cut(folder, tmp_path):
    tokenizer = load_tokenizer(folder())
    tokenizer.backend.enable_truncation(4)
    tokenizer.backend.enable_padding(length=64)
    tokenizer.save(tmp_path / "cut")
    assert '"max_length": 4' in (tmp_path / "cut" / "tokenizer.json").read_text()
    again = load_tokenizer(tmp_path / "cut")
    assert len(again.encode("a b " * 50).ids) == 102
    assert again.fingerprint == tokenizer.fingerprint


def test_the_fingerprint_follows_what_decides_ids_and_nothing_else(folder, tmp_path):
    tokenizer = load_tokenizer(folder())
    tokenizer.save(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    path = tmp_path / "two" / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8"))), "utf-8")
    assert load_tokenizer(tmp_path / "two").fingerprint == tokenizer.fingerprint
    assert load_tokenizer(folder([*SMALL[:-1], "f"])).fingerprint != tokenizer.fingerprint
    assert load_tokenizer(folder(tokenizer_config={"do_lower_case": False})).fingerprint != tokenizer.fingerprint
    assert load_tokenizer(folder(tokenizer_config={"mask_token": "ab"})).fingerprint != tokenizer.fingerprint


def test_saving_keeps_the_class_and_leaves_other_files_alone(folder, tmp_path):
    tokenizer = load_tokenizer(folder(tokenizer_config={"tokenizer_class": "ElectraTokenizer", "model_max_length": 77}))
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "config.json").write_text('{"model_type": "electra"}')
    tokenizer.save(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text("utf-8"))
    assert (config["tokenizer_class"], config["model_max_length"]) == ("ElectraTokenizer", 77)
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [
        "config.json",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    assert (tmp_path / "saved" / "vocab.txt").read_text("utf-8").splitlines() == SMALL


def test_a_save_that_fails_leaves_nothing(folder, tmp_path, monkeypatch):
    tokenizer = load_tokenizer(folder())
    files = tokenizer._files()
    monkeypatch.setattr(tokenizer, "_files", lambda: {**files, "z/z": "no such folder"})
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError):
        tokenizer.save(tmp_path / "broken")
    assert sorted(tmp_path.iterdir()) == before


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_offsets_and_word_ids(data, text):
    tokenizer = _cached(data)
    encoded = tokenizer.encode(text, specials=False)
    assert len(encoded.ids) == len(encoded.offsets) == len(encoded.word_ids)
    words = [word for word in encoded.word_ids if word is not None]
    assert words == sorted(words)
    assert encoded.offsets == sorted(encoded.offsets)
    for id, (start, end) in zip(encoded.ids, encoded.offsets, strict=True):
        assert 0 <= start < end <= len(text)
        if id not in tokenizer.special_ids:
            piece = tokenizer.token(id).removeprefix("##")
            assert tokenizer.backend.normalizer.normalize_str(text[start:end]).strip() == piece


_loaded = {}


def _cached(data):
    if "tokenizer" not in _loaded:
        _loaded["tokenizer"] = load_tokenizer(data / "vocabs" / "bert-base-cased_vocab.txt")
    return _loaded["tokenizer"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, ["does not exist"]),
        ({"other.txt": "x"}, ["holds no tokenizer"]),
        ({"vocab.txt": ""}, ["vocab.txt", "empty"]),
        ({"vocab.txt": "[UNK]\na\nb\na\n"}, ["vocab.txt, line 4", "'a'", "line 2"]),
        ({"vocab.txt": "a\nb\n"}, ["vocab.txt", "[UNK]"]),
        ({"vocab.txt": b"[UNK]\n\xff\n"}, ["vocab.txt", "UTF-8"]),
        ({"tokenizer.json": "{"}, ["tokenizer.json, line 1"]),
        ({"tokenizer.json": '{"version": "1.0"}'}, ["tokenizer.json"]),
        ({"tokenizer.json": "[]"}, ["tokenizer.json", "object"]),
        ({"vocab.txt": "[UNK]\n", "tokenizer_config.json": "{"}, ["tokenizer_config.json, line 1"]),
        ({"vocab.json": '{"a": 0}'}, ["merges.txt"]),
        ({"vocab.json": '{"a": 0}', "merges.txt": "a b\n"}, ["merges.txt, line 1"]),
        ({"vocab.json": '{"a": "x"}', "merges.txt": ""}, ["vocab.json"]),
    ],
)
def test_malformed_files_get_a_sentence_that_names_them(tmp_path, files, words):
    folder = tmp_path / "tokenizer"
    for name, content in files.items():
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(MalmoiError) as mistake:
        load_tokenizer(folder)
    for word in words:
        assert word in str(mistake.value)


def test_an_id_out_of_range_gets_a_sentence(folder):
    with pytest.raises(MalmoiError, match="99"):
        load_tokenizer(folder()).token(99)
