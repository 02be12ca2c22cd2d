"""SentencePiece models: the same ids as transformers for ALBERT and T5, as the sentencepiece library otherwise."""

import io
import json
import shutil

import pytest

from malmoi.errors import MalmoiError
from malmoi.text.tokenizer import load_tokenizer

AWKWARD = [
    "",
    "   ",
    " a  b ",
    "''x'' ``y``",
    "Café naïve ÀÉÎ İstanbul ﬁ e\u0301",
    "[CLS] [MASK] [SEP] a[MASK]b  [mask]",
    "<pad><unk></s> <extra_id_0>x<extra_id_99> <extra_id_100>",
    'f(x) - "q". £5 €6 a–b',
    "\ufffd\x00a\u2028b\tc\r\nd\u00a0e\u3000f\u200bg",
    "👩‍👩‍👧 😀 中文 がぎ ｱｲｳ ＜ｓ＞",
    "▁a ▁▁b",
    "12,000, 3,",
    "a" * 300,
    "가나다 ㄱㄴ \u1100\u1161",
]
MODELS = {"albert": "AlbertTokenizer", "t5": "T5Tokenizer"}
LISTED = {"content": "<new>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}


@pytest.fixture(scope="module")
def real_texts(data):
    lines = (data / "wikitext-2" / "test.txt").read_text("utf-8").splitlines()
    petitions = []
    for path in sorted((data / "petitions").glob("*.jsonl")):
        petitions += [json.loads(line)["content"] for line in path.read_text("utf-8").splitlines()[:100]]
    assert len(lines) > 1000 and len(petitions) > 100
    return AWKWARD + lines + petitions


@pytest.fixture
def model_folder(data, tmp_path):
    """A folder with a real model as spiece.model, and whatever JSON files a test wants beside it."""

    def make(name, **files):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "spiece.model").write_bytes((data / "vocabs" / f"{name}_spiece.model").read_bytes())
        for file, content in files.items():
            (folder / f"{file}.json").write_text(json.dumps(content), "utf-8")
        return folder

    return make


@pytest.fixture(scope="module")
def train_model():
    """The bytes of a small model, learned by the sentencepiece library."""
    sentencepiece = pytest.importorskip("sentencepiece")

    def train(**options):
        written = io.BytesIO()
        sentences = [f"the {word} of 한국어 number {number}" for number in range(200) for word in ("cat", "dog", "(x)")]
        options = {"model_type": "unigram", "vocab_size": 60, "hard_vocab_limit": False, **options}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_writer=written, minloglevel=2, **options
        )
        return written.getvalue()

    return train


def ids_of(tokenizer, texts):
    return [encoded.ids for encoded in tokenizer.encode_batch(texts)]


def assert_same(texts, ours, theirs):
    for text, one, other in zip(texts, ours, theirs, strict=True):
        assert one == other, text


@pytest.mark.parametrize("name", MODELS)
def test_every_id_equals_transformers_also_after_saving(model_folder, real_texts, tmp_path, name):
    pytest.importorskip("sentencepiece")
    import transformers

    folder = model_folder(name, config={"model_type": name})
    ours = load_tokenizer(folder)
    theirs = getattr(transformers, MODELS[name]).from_pretrained(folder, local_files_only=True)
    ids = ids_of(ours, real_texts)
    assert_same(real_texts, ids, theirs(real_texts)["input_ids"])
    assert ours.encode("a", "b").ids == theirs("a", "b")["input_ids"]
    assert ours.vocab_size == len(theirs)
    assert ours.decode(ids[3]) == theirs.decode(ids[3], skip_special_tokens=True)

    ours.save(tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    assert again.fingerprint == ours.fingerprint
    assert_same(real_texts, ids_of(again, real_texts), ids)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved", local_files_only=True)
    assert type(theirs).__name__ == MODELS[name]
    assert_same(real_texts, theirs(real_texts)["input_ids"], ids)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("albert", {"do_lower_case": False}),
        ("albert", {"keep_accents": True}),
        ("albert", {"do_lower_case": False, "keep_accents": True, "remove_space": False}),
        ("albert", {"add_prefix_space": False}),
        ("albert", {"mask_token": {**LISTED, "content": "[MASK]", "lstrip": True, "__type": "AddedToken"}}),
        ("albert", {"added_tokens_decoder": {"30000": {**LISTED, "special": True}}}),
        ("albert", {"cls_token": "[SEP]", "sep_token": "[CLS]"}),
        ("t5", {"extra_ids": 0}),
        ("t5", {"extra_ids": 7}),
        ("t5", {"additional_special_tokens": [f"<extra_id_{number}>" for number in range(100)]}),
        ("t5", {"eos_token": "<pad>"}),
    ],
)
def test_settings_beside_the_model_count_as_in_transformers(model_folder, tmp_path, name, settings):
    pytest.importorskip("sentencepiece")
    from transformers import AutoTokenizer

    folder = model_folder(name, tokenizer_config={"tokenizer_class": MODELS[name], **settings})
    ours = load_tokenizer(folder)
    texts = [*AWKWARD, "a <new> b<extra_id_3>", "x  [MASK] y", "ÀÉ BIG Small"]
    ids = ids_of(ours, texts)
    assert_same(texts, ids, AutoTokenizer.from_pretrained(folder, local_files_only=True)(texts)["input_ids"])
    ours.save(tmp_path / "saved")
    assert_same(texts, ids_of(load_tokenizer(tmp_path / "saved"), texts), ids)
    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved", local_files_only=True)
    assert_same(texts, theirs(texts)["input_ids"], ids)


def test_golden_ids(model_folder):
    albert = load_tokenizer(model_folder("albert", config={"model_type": "albert"}))
    t5 = load_tokenizer(model_folder("t5", config={"model_type": "t5"}))
    assert [albert.token(id) for id in albert.encode("Hello World").ids] == ["[CLS]", "▁hello", "▁world", "[SEP]"]
    # Brackets and other marks that the model's maker defined are text, not special.
    assert albert.special_ids == {0, 1, 2, 3, 4} and albert.decode(albert.encode("f(x)").ids) == "f( x)"
    assert (albert.pad_id, albert.unk_id, albert.cls_id, albert.sep_id, albert.mask_id) == (0, 1, 2, 3, 4)
    assert [t5.token(id) for id in t5.encode("Hello World").ids] == ["▁Hello", "▁World", "</s>"]
    assert (t5.id("<extra_id_0>"), t5.id("<extra_id_99>"), t5.vocab_size) == (32099, 32000, 32100)
    assert (t5.pad_id, t5.eos_id, t5.unk_id, t5.mask_id) == (0, 1, 2, None)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_alone_gives_the_ids_of_the_sentencepiece_library(data, real_texts, tmp_path, name):
    sentencepiece = pytest.importorskip("sentencepiece")
    from transformers import AutoTokenizer

    path = data / "vocabs" / f"{name}_spiece.model"
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = load_tokenizer(path)
    # The library takes the name of a special token for ordinary text.
    texts = [text.replace("<unk>", "unk") for text in real_texts if "[MASK]" not in text and "<pad>" not in text]
    ids, library_ids = ids_of(ours, texts), theirs.encode(texts)
    different = [(text, *cuts) for text, *cuts in zip(texts, ids, library_ids, strict=True) if cuts[0] != cuts[1]]
    assert len(different) < len(texts) / 1000
    # It adds scores in single precision, so that of two ways to cut that are about as good it may take the worse one.
    for text, one, other in different:
        scores = [sum(map(theirs.get_score, cut)) for cut in (one, other)]
        assert scores[0] > scores[1] - 1e-3 and one.count(ours.unk_id) == other.count(ours.unk_id), text

    ours.save(tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    assert again.fingerprint == ours.fingerprint
    assert_same(real_texts, ids_of(again, real_texts), ids_of(ours, real_texts))
    auto = AutoTokenizer.from_pretrained(tmp_path / "saved", local_files_only=True)
    assert_same(real_texts, auto(real_texts)["input_ids"], ids_of(ours, real_texts))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": True, "vocab_size": 320},
        {"add_dummy_prefix": False},
        {"normalization_rule_name": "identity"},
        {"user_defined_symbols": ["(x)", "<tag>"]},
        {"pad_id": 0, "unk_id": 3, "bos_id": 1, "eos_id": 2, "pad_piece": "[PAD]"},
        {"bos_id": -1, "eos_id": -1},
    ],
)
def test_what_a_model_says_about_itself_is_obeyed(train_model, tmp_path, options):
    sentencepiece = pytest.importorskip("sentencepiece")
    path = tmp_path / "tokenizer.model"
    path.write_bytes(train_model(**options))
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = load_tokenizer(tmp_path)
    texts = ["the cat of 한국어", " dog  (x) number(x)7 ", "Ω😀 q", "<tag>the <tag> dog", "ﬁ x", ""]
    assert_same(texts, [one.ids for one in ours.encode_batch(texts)], theirs.encode(texts))
    assert ours.decode(ours.encode("the cat").ids) == "the cat"
    roles = {"pad_id": theirs.pad_id(), "unk_id": theirs.unk_id(), "bos_id": theirs.bos_id(), "eos_id": theirs.eos_id()}
    for role, id in roles.items():
        assert getattr(ours, role) == (None if id < 0 else id), role


@pytest.mark.parametrize("name", ["spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model"])
def test_the_model_is_found_under_its_usual_names(train_model, tmp_path, name):
    (tmp_path / name).write_bytes(train_model())
    assert load_tokenizer(tmp_path).kind == "unigram"


@pytest.mark.parametrize(("kind", "said"), [("bpe", "BPE"), ("char", "character"), ("word", "word")])
def test_other_kinds_of_models_are_refused(train_model, tmp_path, kind, said):
    (tmp_path / "spiece.model").write_bytes(train_model(model_type=kind))
    with pytest.raises(MalmoiError, match=rf"spiece\.model .*{said} kind.*tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_a_class_that_numbers_pieces_its_own_way_is_refused(train_model, tmp_path):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(train_model())
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizerFast"}')
    with pytest.raises(MalmoiError, match=r"sentencepiece\.bpe\.model .*XLMRobertaTokenizer"):
        load_tokenizer(tmp_path)


def test_a_model_cut_anywhere_is_refused(train_model, tmp_path):
    whole = train_model()
    path = tmp_path / "spiece.model"
    for length in [*range(200), *range(200, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(MalmoiError, match=r"spiece\.model is no SentencePiece model"):
            load_tokenizer(tmp_path)
    path.write_bytes(whole)
    load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff" * 100,
        b"IQ== 0\nIg== 1\n",
        b"PK\x03\x04" + bytes(60),
        b"{}",
        b"\x80\x04\x95",
        b"\x08\x01",
        "가나다".encode(),
    ],
)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "tokenizer.model").write_bytes(content)
    for path in (tmp_path, tmp_path / "tokenizer.model"):
        with pytest.raises(MalmoiError, match=r"tokenizer\.model is no SentencePiece model"):
            load_tokenizer(path)


def test_the_command_line_says_it_in_one_sentence(tmp_path, refuses):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "spiece.model").write_bytes(b"\x0a\xff")
    (tmp_path / "corpus.txt").write_text("a\n")
    refuses(
        "prepare", "corpus.txt", "--tokenizer", "broken", "--out", "store", says=["spiece.model", "no SentencePiece"]
    )
    assert not (tmp_path / "store").exists()


def test_pieces_that_end_words_are_not_read_as_byte_level(data, tmp_path):
    shutil.copy(data / "vocabs" / "openai-gpt_encoder_bpe_40000.json", tmp_path / "vocab.json")
    shutil.copy(data / "vocabs" / "openai-gpt_vocab_40000.bpe", tmp_path / "merges.txt")
    with pytest.raises(MalmoiError, match=r"vocab\.json .*</w>"):
        load_tokenizer(tmp_path)
