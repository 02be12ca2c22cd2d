"""malmoi embed"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from malmoi.text.rows import RowOptions

Pool = Literal["cls", "pooler", "mean", "max", "mean-sqrt-len", "weighted-mean"]


def embed(
    model: Annotated[str, Parameter(help="Folder of a model, or a hub id: owner/name.")],
    file: Annotated[Path, Parameter(help="Texts, one a line or record: .txt .jsonl .csv .tsv .parquet; - is a pipe.")],
    /,
    *,
    out: Annotated[
        Path, Parameter(name=["--out", "-o"], help="File to write: .npy, .parquet, .jsonl; - prints lines.")
    ],
    text: Annotated[str | None, Parameter(help="The field or column that holds the text.")] = None,
    id: Annotated[str | None, Parameter(help="The field or column that holds the id; else texts are counted.")] = None,
    layers: Annotated[
        str | None, Parameter(help="last, second-to-last, last4, all, or numbers: 9,10,11,12 (0 are the embeddings).")
    ] = None,
    combine: Annotated[str, Parameter(help="concat, mean, sum, or a weight for each layer: 0.2,0.3,0.5")] = "concat",
    pool: Annotated[Pool | None, Parameter(help="How tokens become one vector; the model's own way, or mean.")] = None,
    normalize: Annotated[bool | None, Parameter(help="Vectors of length one; as the model's folder says.")] = None,
    dimensions: Annotated[int | None, Parameter(help="Keep so many of the first dimensions.")] = None,
    truncate: Annotated[
        Literal["error", "right", "window"],
        Parameter(help="Texts longer than the model: stop, take the beginning, or average over windows."),
    ] = "right",
    words: Annotated[bool, Parameter(negative="", help="A vector for each word instead of each text.")] = False,
    pieces: Annotated[
        Literal["first", "mean", "last", "max"], Parameter(help="Which pieces of a word count (with --words).")
    ] = "first",
    batch_tokens: Annotated[int, Parameter(help="Tokens that are computed at a time.")] = 2048,
    engine: Annotated[
        Literal["torch", "onnx"] | None, Parameter(help="What computes: torch, or ONNX Runtime on a converted folder.")
    ] = None,
    reading: RowOptions | None = None,
    json: Annotated[bool, Parameter(negative="", help="Print what was made as JSON.")] = False,
) -> None:
    """Turn a file of texts into vectors. The same command again goes on where an interrupted one stopped."""
    from malmoi.checkpoint.location import find_folder, find_weights
    from malmoi.data.outputs import STANDARD_OUTPUT
    from malmoi.features.embedding import embed_file, make_plan, print_vectors
    from malmoi.features.onnx_engine import find_onnx
    from malmoi.features.onnx_names import choose_engine
    from malmoi.features.options import VectorOptions, WordOptions
    from malmoi.loading import load
    from malmoi.text.rows import TextRows

    # What is wrong with folders, files and options is said before torch is imported.
    folder = find_folder(model)
    engine = engine or choose_engine(folder)
    options: VectorOptions | WordOptions
    if words:
        refuse_with_words(pool=pool, normalize=normalize, dimensions=dimensions)
        options = WordOptions(truncate, batch_tokens, layers or "last4", combine, pieces)
    else:
        options = VectorOptions(truncate, batch_tokens, layers or "last", combine, pool, normalize, dimensions)
    weights = [find_onnx(folder)] if engine == "onnx" else find_weights(folder)
    rows = TextRows(file, text, id, reading)
    if out == STANDARD_OUTPUT:
        embedder = load(folder, engine).embedder
        count, too_long = print_vectors(embedder, rows, options)
        if too_long:
            print(f"malmoi: {embedder.describe_cut(too_long, count, truncate)}", file=sys.stderr)
        return
    plan = make_plan(folder, weights, rows, out, options)
    manifest = plan.find_finished()
    done = manifest is not None
    if manifest is None:
        embedder = load(folder, engine).embedder
        manifest = embed_file(embedder, plan)
        if manifest.cut:
            print(f"malmoi: {embedder.describe_cut(manifest.cut, manifest.texts, truncate)}", file=sys.stderr)
    if json:
        import json as format
        from dataclasses import asdict

        print(format.dumps(asdict(manifest), ensure_ascii=False))
        return
    what = f"{manifest.rows:,} words of {manifest.texts:,} texts" if words else f"{manifest.texts:,} texts"
    cut = f", {manifest.cut:,} of them longer than the model" if manifest.cut else ""
    again = "; it was made before, nothing to do" if done else ""
    print(f"{out}: {what}{cut}, {manifest.dimensions:,} dimensions{again}")


def refuse_with_words(**options: object) -> None:
    from malmoi.errors import MalmoiError

    for name, value in options.items():
        if value is not None:
            raise MalmoiError(f"--{name} is about texts; it cannot be used with --words.")
