"""How the hub names models, and the short names that people have for some of them."""

from __future__ import annotations

import re

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_PUBLISHED = {
    "google-bert": """
        bert-base-uncased bert-large-uncased bert-base-cased bert-large-cased bert-base-multilingual-uncased
        bert-base-multilingual-cased bert-base-chinese bert-base-german-cased bert-base-german-dbmdz-cased
        bert-base-german-dbmdz-uncased bert-large-uncased-whole-word-masking bert-large-cased-whole-word-masking
        """,
    "FacebookAI": "roberta-base roberta-large xlm-roberta-base xlm-roberta-large",
    "distilbert": "distilbert-base-uncased distilbert-base-cased distilbert-base-multilingual-cased distilroberta-base",
    "albert": """
        albert-base-v1 albert-large-v1 albert-xlarge-v1 albert-xxlarge-v1
        albert-base-v2 albert-large-v2 albert-xlarge-v2 albert-xxlarge-v2
        """,
    "openai-community": "gpt2 gpt2-medium gpt2-large gpt2-xl openai-gpt",
    "google-t5": "t5-small t5-base t5-large t5-3b t5-11b",
    "xlnet": "xlnet-base-cased xlnet-large-cased",
    "transfo-xl": "transfo-xl-wt103",
}
_OWNERS = {name: owner for owner, names in _PUBLISHED.items() for name in names.split()}


def has_hub_form(name: str) -> bool:
    """Whether a name is written as the hub names its models: owner/name."""
    return _HUB_ID.fullmatch(name) is not None


def suggest_hub_id(name: str) -> str | None:
    """The hub id of a published model that is called by this name, such as google-bert/bert-base-uncased."""
    known = name.lower().replace("_", "-")
    return f"{_OWNERS[known]}/{known}" if known in _OWNERS else None
