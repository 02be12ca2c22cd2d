"""malmoi info"""

from __future__ import annotations

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
    from malmoi.checkpoint.location import find_folder, find_weights

    # What is wrong with the folder is said before torch is imported.
    folder = find_folder(model)
    find_weights(folder)
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
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")
    for note in summary.notes:
        print(f"note: {note}")


def describe_head(head: dict[str, Any]) -> str:
    """What a head for a task answers, in a line."""
    task, labels = head["task"] or head["shape"], head["labels"]
    shown = ", ".join(labels[:_LABELS_SHOWN]) + (
        f" and {len(labels) - _LABELS_SHOWN:,} more" if labels[_LABELS_SHOWN:] else ""
    )
    return f"{task}: {shown}" if labels else str(task)
