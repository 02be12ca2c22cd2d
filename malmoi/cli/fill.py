"""malmoi fill"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def fill(
    model: Annotated[str, Parameter(help="Folder of a model, or a hub id: owner/name.")],
    text: Annotated[str, Parameter(help="A text with one [MASK] or several; - is a pipe.")],
    /,
    *,
    top: Annotated[int, Parameter(help="How many pieces to show for each gap.")] = 5,
    json: Annotated[bool, Parameter(negative="", help="Print the pieces as JSON.")] = False,
) -> None:
    """Fill the gaps of a text."""
    from malmoi.checkpoint.location import find_folder, find_weights

    # What is wrong with the folder is said before torch is imported.
    folder = find_folder(model)
    find_weights(folder)
    from malmoi.loading import load
    from malmoi.text.sources import STANDARD_INPUT

    gaps = load(folder).fill(_read_pipe() if text in STANDARD_INPUT else text, top)
    if json:
        import json as format
        from dataclasses import asdict

        print(format.dumps([[asdict(one) for one in gap] for gap in gaps], ensure_ascii=False))
        return
    for number, gap in enumerate(gaps, 1):
        if len(gaps) > 1:
            print(f"gap {number}")
        for one in gap:
            print(f"{one.probability:7.2%}  {one.token}  →  {one.text}")


def _read_pipe() -> str:
    import sys

    from malmoi.errors import MalmoiError

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as mistake:
        raise MalmoiError(f"standard input: byte {mistake.start + 1} is not UTF-8, which the text has to be.") from None
