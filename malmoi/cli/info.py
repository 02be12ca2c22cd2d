"""malmoi info"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


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
        **{f"file {name}": f"{size:,} bytes" for name, size in summary.file_bytes.items()},
    }
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")
    for note in summary.notes:
        print(f"note: {note}")
