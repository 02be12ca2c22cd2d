"""malmoi prepare"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from malmoi.text.reading import ReadOptions


def prepare(
    files: Annotated[list[str], Parameter(help="Files or folders with text; - is standard input.")],
    /,
    *,
    tokenizer: Annotated[str, Parameter(help="Folder of the tokenizer.")],
    out: Annotated[Path, Parameter(help="Folder to make the store in.")],
    sentences: Annotated[
        Literal["rules", "lines", "kiwi"],
        Parameter(help="How documents are split: by rules, at line ends only, or by kiwipiepy (Korean)."),
    ] = "rules",
    workers: Annotated[int | None, Parameter(help="Processes that encode; all cores by default.")] = None,
    json: Annotated[bool, Parameter(negative="", help="Print the store's manifest as JSON.")] = False,
    reading: ReadOptions | None = None,
) -> None:
    """Turn text into a token store. The same command again goes on where an interrupted one stopped."""
    from malmoi.data.prepare import prepare_store
    from malmoi.text.reading import Corpus
    from malmoi.text.tokenizer import load_tokenizer

    def tell(sentence: str) -> None:
        print(f"malmoi: {sentence}", file=sys.stderr)

    corpus = Corpus(files, reading)
    loaded = load_tokenizer(tokenizer)
    manifest, made = prepare_store(corpus, loaded, out, sentences=sentences, workers=workers, tell=tell)
    if json:
        print((out / "store.json").read_text("utf-8"), end="")
        return
    size = sum(digest.bytes for name, digest in manifest.files.items() if name.endswith(".bin"))
    for source in manifest.sources:
        print(describe_source(source))
    print(
        f"{out}: {manifest.documents:,} documents, {manifest.sentences:,} sentences, {manifest.tokens:,} tokens "
        f"({manifest.unknown_tokens / manifest.tokens:.2%} unknown), {size / manifest.tokens:.2f} bytes a token"
        + ("" if made else "; it was prepared before, nothing to do")
    )
    print(f"next: malmoi inspect {out}")


def describe_source(source: dict[str, object]) -> str:
    """What was taken for a file, in a line."""
    facts = [source["format"], source["encoding"]]
    if source["rule"]:
        facts.append(f"documents: {source['rule']}")
    if source["field"]:
        facts.append(f"field: {source['field']}")
    return f"{source['path']}: {', '.join(str(fact) for fact in facts if fact)}, {source['documents']:,} documents"
