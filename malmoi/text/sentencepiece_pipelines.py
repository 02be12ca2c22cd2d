"""The pipelines around a Unigram vocabulary. The class that a folder names decides, as in transformers:

- ALBERT: quotes unified, accents stripped, lower-cased unless tokenizer_config.json says otherwise; [CLS] A [SEP].
- T5: 100 sentinels <extra_id_99> … <extra_id_0> follow the pieces; A </s>.
- no class: what the sentencepiece library does, with nothing put around the text.
"""

from __future__ import annotations

import base64
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from malmoi.errors import MalmoiError
from malmoi.text.sentencepiece import CONTROL, NORMAL, USER_DEFINED, SentencePieceModel, read_model
from malmoi.text.special_tokens import Config, add_tokens, listed_tokens, token_content

UNIGRAM_CLASSES = {"AlbertTokenizer", "T5Tokenizer"}

_ALBERT_ROLES = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "bos_token": "[CLS]",
    "eos_token": "[SEP]",
}
_T5_ROLES = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"}
_SENTINELS = 100
_PLAIN_CLASSES = {"", "PreTrainedTokenizer", "TokenizersBackend"}
# Scores in steps of 2^-14 pass through tokenizer.json unchanged and add up without rounding, so that ties fall the same
# way before saving and after; a finer step would need more digits than the `tokenizers` library reads exactly.
_SCORE_STEPS = 2**14

Scores = list[tuple[str, float]]


def read_sentencepiece(path: Path, config: Config, class_name: str) -> tuple[Tokenizer, Config]:
    """Build the tokenizer of the model file `path` as the class `class_name` ("" for none) would."""
    model = read_model(path)
    if class_name not in UNIGRAM_CLASSES | _PLAIN_CLASSES:
        raise MalmoiError(
            f"{path} belongs to a {class_name}, which numbers or cuts its pieces in a way of its own; "
            "save it with transformers so that the folder has a tokenizer.json."
        )
    try:
        if class_name in _PLAIN_CLASSES:
            return _build_plain(model, config)
        scores = [(piece, score) for piece, score, _ in model.pieces]
        if class_name == "T5Tokenizer":
            scores += [(sentinel, 0.0) for sentinel in reversed(_sentinels(config))]
        backend, config = _build(class_name, scores, model.role_ids["unk_token"], model.character_map, config)
        add_tokens(backend, config, listed_tokens(config, {}))
        _add_missing(backend, model, (CONTROL, USER_DEFINED))
        _set_template(backend, class_name, config)
    except Exception as mistake:  # the library raises nothing narrower
        raise MalmoiError(f"{path} makes no tokenizer: {mistake}.") from None
    return backend, config


def rebuild_unigram(class_name: str, pipeline: Config, config: Config) -> tuple[Tokenizer, Config]:
    """Build the tokenizer anew from the vocabulary of a tokenizer.json, which is how transformers reads these classes.

    Python reads the scores to the last digit and the `tokenizers` library does not, so even ties fall the same way.
    """
    normalizer = pipeline.get("normalizer") or {}
    maps = [step.get("precompiled_charsmap") for step in normalizer.get("normalizers", [normalizer])]
    character_map = next((base64.b64decode(text) for text in maps if text), b"")
    model = pipeline["model"]
    scores = [(piece, score) for piece, score in model["vocab"]]
    backend, config = _build(class_name, scores, model["unk_id"], character_map, config)
    add_tokens(backend, config, listed_tokens(config, pipeline))
    _set_template(backend, class_name, config)
    return backend, config


def _build(
    class_name: str, scores: Scores, unknown_id: int, character_map: bytes, config: Config
) -> tuple[Tokenizer, Config]:
    # Both classes split at any white space first, and have no use for the bytes of unknown characters.
    backend = Tokenizer(models.Unigram(scores, unknown_id, byte_fallback=False))
    steps: list[normalizers.Normalizer] = []
    scheme = "always"
    if class_name == "AlbertTokenizer":
        config = {**_ALBERT_ROLES, **config}
        scheme = "always" if config.get("add_prefix_space", True) else "never"
        steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if not config.get("keep_accents", False):
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        if config.get("do_lower_case", True):
            steps.append(normalizers.Lowercase())
    else:
        config = {**_T5_ROLES, **config}
    if character_map:
        steps.append(normalizers.Precompiled(character_map))
    backend.normalizer = normalizers.Sequence(steps)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace("▁", scheme)]
    )
    backend.decoder = decoders.Metaspace("▁", scheme)
    return backend, config


def _set_template(backend: Tokenizer, class_name: str, config: Config) -> None:
    first, last = token_content(config.get("cls_token")), token_content(config.get("sep_token"))
    single, pair = f"{first}:0 $A:0 {last}:0", f"{first}:0 $A:0 {last}:0 $B:1 {last}:1"
    if class_name == "T5Tokenizer":
        backend.add_special_tokens(_sentinels(config))
        first = last = token_content(config["eos_token"])
        single, pair = f"$A {last}", f"$A {last} $B {last}"
    ids = {token: id for token in (first, last) if token and (id := backend.token_to_id(token)) is not None}
    if first in ids and last in ids:
        backend.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=list(ids.items())
        )


def _sentinels(config: Config) -> list[str]:
    return [f"<extra_id_{number}>" for number in range(config.get("extra_ids", _SENTINELS))]


def _build_plain(model: SentencePieceModel, config: Config) -> tuple[Tokenizer, Config]:
    # The sentencepiece library scores what the model's maker defined in this way, so that it is hardly ever cut.
    best = max((score for _, score, kind in model.pieces if kind == NORMAL), default=0.0)
    exact = [
        (piece, len(piece.encode()) * best - 0.1 if kind == USER_DEFINED else score)
        for piece, score, kind in model.pieces
    ]
    scores = [(piece, round(score * _SCORE_STEPS) / _SCORE_STEPS) for piece, score in exact]
    backend = Tokenizer(models.Unigram(scores, model.role_ids["unk_token"], byte_fallback=model.byte_fallback))
    steps: list[normalizers.Normalizer] = []
    if model.character_map:
        steps.append(normalizers.Precompiled(model.character_map))
    if model.single_spaces:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex(" $"), "")]
        if not model.space_before_text:
            steps.append(normalizers.Replace(Regex("^ "), ""))
    backend.normalizer = normalizers.Sequence(steps)
    scheme = "first" if model.space_before_text else "never"
    backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", scheme)
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace("▁", scheme)])
    roles = {role: model.pieces[id][0] for role, id in model.role_ids.items()}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **roles, **config}
    add_tokens(backend, config, listed_tokens(config, {}))
    _add_missing(backend, model, (CONTROL,))
    return backend, config


def _add_missing(backend: Tokenizer, model: SentencePieceModel, kinds: tuple[int, ...]) -> None:
    """Make the model's own symbols indivisible, but those that the files beside it describe stay as described."""
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    backend.add_tokens(
        [
            AddedToken(piece, normalized=False, special=kind == CONTROL)
            for piece, _, kind in model.pieces
            if kind in kinds and piece not in known
        ]
    )
