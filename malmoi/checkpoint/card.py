"""The model card: what a model is, on one page, in the form that the hub shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CARD = "README.md"
# The line about a run that was stopped; whoever opens its model is told.
_UNFINISHED = re.compile(r"^\| unfinished \| (.+) \|$", re.MULTILINE)
_LONGEST_TABLE = 100_000

_SIZES = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden size",
    "num_attention_heads": "attention heads",
    "vocab_size": "vocabulary",
    "max_position_embeddings": "positions",
}

_USES = {
    "ForPreTraining": "fill-mask",
    "ForMaskedLM": "fill-mask",
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMultipleChoice": "multiple-choice",
}


_MODEL_LINES = """from transformers import AutoModel{ending}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModel{ending}.from_pretrained("{name}")"""
_EMBEDDER_LINES = """from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("{name}").encode(["a text", "another"])"""


def write_card(
    name: str, configuration: Mapping[str, Any], facts: Mapping[str, object], *, is_embedder: bool = False
) -> str:
    """The text of README.md. `facts` are lines for the table beyond the sizes: what it was trained on, how long, …"""
    sizes = {words: f"{configuration[field]:,}" for field, words in _SIZES.items() if field in configuration}
    lines = {"architecture": configuration["architectures"][0], **sizes, **facts}
    table = "\n".join(f"| {_cell(key)} | {_cell(value)} |" for key, value in lines.items())
    ending, task = _find_use(str(configuration["architectures"][0]))
    if is_embedder:
        task = "sentence-similarity"
    return f"""---
library_name: {"sentence-transformers" if is_embedder else "transformers"}
pipeline_tag: {task}
tags:
- malmoi
---

# {name}

| | |
|---|---|
{table}

```python
{_EMBEDDER_LINES.format(name=name) if is_embedder else _MODEL_LINES.format(name=name, ending=ending)}
```

Made with malmoi.
"""


def read_unfinished(folder: Path) -> list[str]:
    """A sentence about a model whose training was stopped, if the card of the folder says so."""
    if not (folder / CARD).is_file():
        return []
    with (folder / CARD).open(encoding="utf-8", errors="replace") as file:
        return [f"unfinished: {where}" for where in _UNFINISHED.findall(file.read(_LONGEST_TABLE))]


def _find_use(architecture: str) -> tuple[str, str]:
    """How the name of the class that loads it ends, and what the hub calls its use."""
    return next(
        ((ending, use) for ending, use in _USES.items() if architecture.endswith(ending)), ("", "feature-extraction")
    )


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
