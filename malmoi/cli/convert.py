"""malmoi convert"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def convert(
    source: Annotated[str, Parameter(help="Folder of a model, its weights pickled or not.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="New folder to write the model to.")],
) -> None:
    """Rewrite a model as safe files; nothing in the old ones is executed."""
    from malmoi.checkpoint.location import find_folder

    # What is wrong with the folder is said before torch is imported.
    folder = find_folder(source)
    from malmoi.checkpoint.conversion import convert_folder

    converted = convert_folder(folder, out)
    print(f"{out}: {converted.system}, {sum(weight.numel() for weight in converted.model.parameters()):,} parameters")
    for note in converted.notes:
        print(f"note: {note}")
