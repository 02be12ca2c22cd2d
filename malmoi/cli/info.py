"""malmoi info"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

_LABELS_SHOWN = 8


def info(
    model: Annotated[str, Parameter(help="Folder of a model, or a hub id: owner/name.")],
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="Print the figures as JSON.")] = False,
) -> None:
    """Say what a model is: system, sizes, vocabulary, files."""
    from malmoi.checkpoint.location import find_folder
    from malmoi.features.onnx_names import choose_engine

    # What is wrong with the folder is said before torch is imported.
    folder = find_folder(model)
    if choose_engine(folder) == "onnx":
        _describe_onnx(folder, json)
        return
    from malmoi.checkpoint.summary import summarise

    summary = summarise(folder)
    if json:
        import json as format
        from dataclasses import asdict

        print(format.dumps(asdict(summary), ensure_ascii=False))
        return
    lines = {
        "system": summary.system,
        "parameters": f"{summary.parameters:,} (without heads {summary.encoder_parameters:,})",
        "stored as": ", ".join(summary.weight_types),
        "layers": f"{summary.num_hidden_layers}, {summary.hidden_size:,} wide",
        "positions": f"{summary.max_position_embeddings:,}",
        "vocabulary": f"{summary.vocab_size:,}",
        "tokenizer": f"{summary.tokenizer}, {summary.tokenizer_pieces:,} pieces",
        **({} if summary.head is None else {"head": describe_head(summary.head)}),
        **{f"file {name}": f"{size:,} bytes" for name, size in summary.file_bytes.items()},
    }
    _print_lines(lines)
    for note in summary.notes:
        print(f"note: {note}")


def _describe_onnx(folder: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from malmoi.config import read_object
    from malmoi.features.onnx_engine import SIZES
    from malmoi.tasks.onnx_model import OnnxModel

    model = OnnxModel(folder)
    engine, tokenizer, head = model.model, model.tokenizer, None if model.head is None else asdict(model.head)
    content = read_object(folder / "config.json")
    files = {path.name: path.stat().st_size for path in sorted(engine.path.parent.iterdir()) if path.is_file()}
    if as_json:
        import json

        sizes = {name: content[name] for name in SIZES}
        figures = {
            "folder": str(folder),
            "system": content.get("model_type"),
            **sizes,
            "head": head,
            "file_bytes": files,
        }
        print(json.dumps({**figures, "engine": "onnx", "tokenizer_pieces": tokenizer.vocab_size}, ensure_ascii=False))
        return
    _print_lines(
        {
            "system": str(content.get("model_type")),
            "stored as": "ONNX, which needs no torch",
            "layers": f"{engine.num_hidden_layers}, {engine.hidden_size:,} wide",
            "positions": f"{engine.max_positions:,}",
            "vocabulary": f"{content['vocab_size']:,}",
            "tokenizer": f"{tokenizer.kind}, {tokenizer.vocab_size:,} pieces",
            **({} if head is None else {"head": describe_head(head)}),
            **{f"file {name}": f"{size:,} bytes" for name, size in files.items()},
        }
    )


def _print_lines(lines: dict[str, str]) -> None:
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")


def describe_head(head: dict[str, Any]) -> str:
    """What a head for a task answers, in a line."""
    task, labels = head["task"] or head["shape"], head["labels"]
    shown = ", ".join(labels[:_LABELS_SHOWN]) + (
        f" and {len(labels) - _LABELS_SHOWN:,} more" if labels[_LABELS_SHOWN:] else ""
    )
    return f"{task}: {shown}" if labels else str(task)
