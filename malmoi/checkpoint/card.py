"""The model card: what a model is, on one page, in the form that the hub shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIZES = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden size",
    "num_attention_heads": "attention heads",
    "vocab_size": "vocabulary",
    "max_position_embeddings": "positions",
}


def write_card(name: str, configuration: Mapping[str, Any], facts: Mapping[str, object]) -> str:
    """The text of README.md. `facts` are lines for the table beyond the sizes: what it was trained on, how long, …"""
    sizes = {words: f"{configuration[field]:,}" for field, words in _SIZES.items() if field in configuration}
    lines = {"architecture": configuration["architectures"][0], **sizes, **facts}
    table = "\n".join(f"| {_cell(key)} | {_cell(value)} |" for key, value in lines.items())
    task = "fill-mask" if _fills(configuration) else "feature-extraction"
    return f"""---
library_name: transformers
pipeline_tag: {task}
tags:
- malmoi
---

# {name}

| | |
|---|---|
{table}

```python
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModel.from_pretrained("{name}")
```

Made with malmoi.
"""


def _fills(configuration: Mapping[str, Any]) -> bool:
    return str(configuration["architectures"][0]).endswith(("ForPreTraining", "ForMaskedLM"))


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
