"""The files a tokenizer comes in, read the way transformers reads them.

Four forms are found in the wild: tokenizer.json, which describes the whole pipeline; vocab.txt, where the pipeline is
BERT's; vocab.json with merges.txt, where it is the byte-level one of GPT-2 and RoBERTa; and a SentencePiece model
(sentencepiece_pipelines.py). Beside them, tokenizer_config.json names a class. For a class of the BERT, GPT-2, RoBERTa,
ALBERT or T5 kind transformers takes only the vocabulary out of tokenizer.json and builds the pipeline anew from
tokenizer_config.json, so the same is done here; for all others tokenizer.json is taken as it is.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from malmoi.errors import MalmoiError
from malmoi.text.panics import catch_panics
from malmoi.text.sentencepiece import FILE_NAMES
from malmoi.text.sentencepiece_pipelines import UNIGRAM_CLASSES, read_sentencepiece, rebuild_unigram
from malmoi.text.special_tokens import Config, add_tokens, listed_tokens, token_content

_BERT_ROLES = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
_GPT2_ROLES = {"unk_token": "<|endoftext|>", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
_ROBERTA_ROLES = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "mask_token": "<mask>",
    "bos_token": "<s>",
    "eos_token": "</s>",
}

# Classes (without "Fast") that are BertTokenizer, GPT2Tokenizer or RobertaTokenizer under another name.
_BERT_CLASSES = {
    f"{name}Tokenizer"
    for name in (
        *("Bert", "DistilBert", "Electra", "ConvBert", "MobileBert", "SqueezeBert", "LayoutLM", "Lxmert"),
        *("DPRQuestionEncoder", "DPRContextEncoder", "DPRReader"),
    )
}
_GPT2_CLASSES = {"GPT2Tokenizer"}
_ROBERTA_CLASSES = {"RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer"}

# The class of a folder whose files name none, from the model that lies beside it.
_CLASS_OF_MODEL_TYPE = {
    **dict.fromkeys(("bert", "distilbert", "electra", "convbert", "ernie", "megatron-bert", "nezha"), "BertTokenizer"),
    **dict.fromkeys(("gpt2", "gpt_neo", "gptj"), "GPT2Tokenizer"),
    **dict.fromkeys(("roberta", "bart", "longformer"), "RobertaTokenizer"),
    **dict.fromkeys(("t5", "mt5", "switch_transformers"), "T5Tokenizer"),
    "albert": "AlbertTokenizer",
}
_GENERIC_CLASS = "PreTrainedTokenizerFast"


def read_tokenizer_files(path: Path) -> tuple[Tokenizer, Config]:
    """Build the tokenizer that `path` (a folder, or one file of it) describes, with its tokenizer_config.json."""
    if not path.exists():
        raise MalmoiError(f"{path} does not exist; give the folder of a tokenizer, or a vocab.txt.")
    with catch_panics(str(path)):
        return _read_any_form(path)


def _read_any_form(path: Path) -> tuple[Tokenizer, Config]:
    folder = path if path.is_dir() else path.parent
    config = _read_config(folder)
    if path.is_file() and path.suffix == ".txt":
        return _read_vocabulary_lines(path, config)
    if path.is_file() and path.suffix == ".model":
        return read_sentencepiece(path, config, _class_name(config))
    if path.is_file() and path.name != "tokenizer.json":
        raise MalmoiError(f"{path} is no tokenizer file; give the folder it lies in, a tokenizer.json or a vocab.txt.")
    if (folder / "tokenizer.json").is_file():
        return _read_pipeline(folder / "tokenizer.json", config)
    if (folder / "vocab.txt").is_file():
        return _read_vocabulary_lines(folder / "vocab.txt", config)
    if (folder / "vocab.json").is_file():
        return _read_vocabulary_and_merges(folder, config)
    for name in FILE_NAMES:
        if (folder / name).is_file():
            return read_sentencepiece(folder / name, config, _class_name(config))
    raise MalmoiError(
        f"{folder} holds no tokenizer: no tokenizer.json, no vocab.txt, no vocab.json with merges.txt, no spiece.model."
    )


# --- the settings beside the vocabulary ---------------------------------------------------------------------------


def _read_config(folder: Path) -> Config:
    config = _read_object(folder / "tokenizer_config.json")
    # special_tokens_map.json is the older place: it counts only where the newer one is not filled in.
    if "added_tokens_decoder" not in config:
        config.update(_read_object(folder / "special_tokens_map.json"))
    if not config.get("tokenizer_class"):
        model = _read_object(folder / "config.json")
        named = model.get("tokenizer_class") or _CLASS_OF_MODEL_TYPE.get(str(model.get("model_type")))
        if named:
            config["tokenizer_class"] = named
        else:
            config.pop("tokenizer_class", None)
    for key in ("tokenizer_file", "vocab_file", "merges_file", "name_or_path"):
        config.pop(key, None)  # where the files once lay on somebody else's machine
    return config


def _class_name(config: Config) -> str:
    return str(config.get("tokenizer_class", "")).removesuffix("Fast")


def _read_object(path: Path) -> Config:
    if not path.is_file():
        return {}
    content = _read_json(path)
    if not isinstance(content, dict):
        raise MalmoiError(f"{path} must hold one JSON object.")
    return content


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except json.JSONDecodeError as mistake:
        raise MalmoiError(f"{path}, line {mistake.lineno}: this is no valid JSON ({mistake.msg}).") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as mistake:
        raise MalmoiError(f"{path} is not UTF-8 text (byte {mistake.start}).") from None


# --- the three forms ----------------------------------------------------------------------------------------------


def _read_pipeline(path: Path, config: Config) -> tuple[Tokenizer, Config]:
    text = _read_text(path)
    pipeline = _read_object(path)
    try:
        backend = Tokenizer.from_str(text)
    except Exception as mistake:  # the library raises nothing narrower
        raise MalmoiError(f"{path} does not describe a tokenizer: {mistake}.") from None
    # The class reads the added tokens of tokenizer.json only where tokenizer_config.json lists none.
    listed = listed_tokens(config, pipeline)
    name = _class_name(config)
    model = pipeline["model"]
    if name in _BERT_CLASSES and isinstance(backend.model, models.WordPiece):
        config = {**_BERT_ROLES, **config}
        backend = _bert_pipeline(model["vocab"], config)
        add_tokens(backend, config, listed)
        _set_bert_template(backend, config)
    elif name in _GPT2_CLASSES | _ROBERTA_CLASSES and isinstance(backend.model, models.BPE):
        # Older files write a merge as "a b", newer ones as ["a", "b"].
        pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
        merges = [(left, right) for left, right in pairs]
        backend = _byte_level(model["vocab"], merges, config, backend.post_processor, listed)
        config = {**(_ROBERTA_ROLES if name in _ROBERTA_CLASSES else _GPT2_ROLES), **config}
    elif name in UNIGRAM_CLASSES and isinstance(backend.model, models.Unigram):
        template = backend.post_processor
        backend, config = rebuild_unigram(name, pipeline, config)
        if name == "AlbertTokenizer" and template is not None:
            backend.post_processor = template
    else:
        config = {"tokenizer_class": _GENERIC_CLASS, **config}
        add_tokens(backend, config, listed)
    backend.encode_special_tokens = bool(config.get("split_special_tokens", False))
    return backend, config


def _read_vocabulary_lines(path: Path, config: Config) -> tuple[Tokenizer, Config]:
    pieces = _read_text(path).split("\n")
    while pieces and not pieces[-1]:
        pieces.pop()
    if not pieces:
        raise MalmoiError(f"{path} is empty; a vocabulary has one piece a line.")
    vocabulary: dict[str, int] = {}
    for id, piece in enumerate(pieces):
        if piece in vocabulary:
            raise MalmoiError(
                f"{path}, line {id + 1}: the piece {piece!r} stands already in line {vocabulary[piece] + 1}."
            )
        vocabulary[piece] = id
    config = {**_BERT_ROLES, **_inferred_case(pieces), **config}
    config.setdefault("tokenizer_class", "BertTokenizer")
    unknown = token_content(config["unk_token"])
    if unknown not in vocabulary:
        raise MalmoiError(f"{path} has no {unknown}; a WordPiece vocabulary needs a piece for what it does not know.")
    backend = _bert_pipeline(vocabulary, config)
    add_tokens(backend, config, listed_tokens(config, {}))
    _set_bert_template(backend, config)
    return backend, config


def _inferred_case(pieces: list[str]) -> Config:
    """Whether a vocabulary is cased, seen from its pieces. Special ones such as [UNK] tell nothing."""
    text = [piece for piece in pieces if not re.fullmatch(r"\[.*\]", piece)]
    cased = any(piece != piece.lower() for piece in text)
    # Stripping accents takes Hangul syllables apart, so a vocabulary that holds them was made without it.
    hangul = any("가" <= character <= "힣" for piece in text for character in piece)
    return {"do_lower_case": not cased, "strip_accents": False if cased or hangul else None}


def _read_vocabulary_and_merges(folder: Path, config: Config) -> tuple[Tokenizer, Config]:
    vocabulary = _read_object(folder / "vocab.json")
    if not vocabulary or not all(isinstance(id, int) for id in vocabulary.values()):
        raise MalmoiError(f"{folder / 'vocab.json'} must map each piece to its number.")
    # Half of the pieces or more: a byte-level vocabulary that was learned from XML may hold a few.
    if sum(piece.endswith("</w>") for piece in vocabulary) * 2 > len(vocabulary):
        raise MalmoiError(
            f"{folder / 'vocab.json'} marks the ends of words with </w>, as OpenAI GPT's does, and only "
            "byte-level ones are read in this form; save it with transformers so that the folder has a tokenizer.json."
        )
    path = folder / "merges.txt"
    if not path.is_file():
        raise MalmoiError(f"{path} is missing; a vocab.json needs its merges.")
    merges = []
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        pair = line.split()
        if len(pair) != 2 or not all(piece in vocabulary for piece in (*pair, "".join(pair))):
            raise MalmoiError(f"{path}, line {number}: a merge is two pieces of vocab.json, and so is what they make.")
        merges.append((pair[0], pair[1]))
    if "tokenizer_class" not in config:
        roberta = {"<s>", "</s>", "<mask>"} <= vocabulary.keys()
        config["tokenizer_class"] = "RobertaTokenizer" if roberta else "GPT2Tokenizer"
    roles = _ROBERTA_ROLES if _class_name(config) in _ROBERTA_CLASSES else _GPT2_ROLES
    backend = _byte_level(vocabulary, merges, config, None, listed_tokens(config, {}))
    return backend, {**roles, **config}


# --- the pipelines ------------------------------------------------------------------------------------------------


def _bert_pipeline(vocabulary: dict[str, int], config: Config) -> Tokenizer:
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=token_content(config["unk_token"]) or "[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
        strip_accents=config.get("strip_accents"),
        lowercase=config.get("do_lower_case", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    return backend


def _set_bert_template(backend: Tokenizer, config: Config) -> None:
    first, last = token_content(config["cls_token"]), token_content(config["sep_token"])
    if first is None or last is None or None in (ids := [backend.token_to_id(first), backend.token_to_id(last)]):
        return
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0",
        pair=f"{first}:0 $A:0 {last}:0 $B:1 {last}:1",
        special_tokens=[(first, ids[0]), (last, ids[1])],
    )


def _byte_level(
    vocabulary: dict[str, int],
    merges: list[tuple[str, str]],
    config: Config,
    post_processor: processors.PostProcessor | None,
    listed: list[AddedToken],
) -> Tokenizer:
    prefix_space = bool(config.get("add_prefix_space", False))
    backend = Tokenizer(
        models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False)
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    backend.decoder = decoders.ByteLevel()
    roberta = _class_name(config) in _ROBERTA_CLASSES
    config = {**(_ROBERTA_ROLES if roberta else _GPT2_ROLES), **config}
    add_tokens(backend, config, listed)
    if post_processor is not None:
        backend.post_processor = post_processor
    if roberta:
        last, first = (token_content(config[role]) or "" for role in ("sep_token", "cls_token"))
        last_id, first_id = backend.token_to_id(last), backend.token_to_id(first)
        if last_id is not None and first_id is not None:
            trim_offsets = bool(config.get("trim_offsets", True))
            backend.post_processor = processors.RobertaProcessing(
                (last, last_id), (first, first_id), trim_offsets, prefix_space
            )
    return backend
