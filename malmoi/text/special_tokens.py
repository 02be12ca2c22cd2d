"""Tokens that are never cut into pieces: the ones with a role, such as [MASK], and others that the files list."""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Tokenizer

Config = dict[str, Any]
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "bos_token", "eos_token")


def token_content(token: Any) -> str | None:
    """A special token as the files write it (text, or an object with a `content`) as plain text."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) and token else None


def listed_tokens(config: Config, pipeline: Config) -> list[AddedToken]:
    """The added tokens that the files list, in the order of their ids."""
    if "added_tokens_decoder" in config:
        listed = sorted((int(id), token) for id, token in config["added_tokens_decoder"].items())
    else:
        listed = sorted((int(token["id"]), token) for token in pipeline.get("added_tokens", []))
    return [_added_token(token) for _, token in listed]


def add_tokens(backend: Tokenizer, config: Config, listed: list[AddedToken]) -> None:
    """Make the listed tokens and the special ones indivisible. One that the vocabulary has keeps its id."""
    known = {token.content for token in listed}
    known.update(token.content for token in backend.get_added_tokens_decoder().values())
    extra = config.get("extra_special_tokens") or config.get("additional_special_tokens") or []
    if isinstance(extra, dict):
        extra = list(extra.values())
    tokens = list(listed)
    for token in [*(config.get(role) for role in ROLES), *extra]:
        content = token_content(token)
        if content is None or content in known:
            continue
        # A role's usual name that the vocabulary does not hold is no token of this tokenizer.
        if not isinstance(token, dict) and backend.token_to_id(content) is None and content not in extra:
            continue
        known.add(content)
        tokens.append(_added_token({"special": True, **token} if isinstance(token, dict) else {"content": content}))
    backend.add_tokens(tokens)


def _added_token(token: dict[str, Any]) -> AddedToken:
    special = bool(token.get("special", True))
    return AddedToken(
        token["content"],
        single_word=bool(token.get("single_word", False)),
        lstrip=bool(token.get("lstrip", False)),
        rstrip=bool(token.get("rstrip", False)),
        normalized=bool(token.get("normalized", not special)),
        special=special,
    )
