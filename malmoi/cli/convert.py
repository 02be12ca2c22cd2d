"""malmoi convert"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from malmoi.writing import writing


def convert(
    source: Annotated[str, Parameter(help="Folder of a model, its weights pickled or not, or a hub id: owner/name.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="New folder to write the model to.")],
    to: Annotated[
        Literal["safetensors", "onnx"],
        Parameter(help="The form of the weights; onnx is for vectors and tasks without torch."),
    ] = "safetensors",
    int8: Annotated[
        bool, Parameter(negative="", help="With --to onnx: multiply bytes, several times faster on a processor.")
    ] = False,
) -> None:
    """Rewrite a model as safe files; nothing in the old ones is executed."""
    from malmoi.checkpoint.location import find_folder
    from malmoi.errors import MalmoiError

    if int8 and to != "onnx":
        raise MalmoiError("--int8 is a form of ONNX models; add --to onnx.")
    # What is wrong with the folder, or missing on this machine, is said before torch is imported.
    folder = find_folder(source)
    if to == "onnx":
        _convert_to_onnx(folder, out, int8)
        return
    from malmoi.checkpoint.conversion import convert_folder

    converted = convert_folder(folder, out)
    print(f"{out}: {converted.system}, {sum(weight.numel() for weight in converted.model.parameters()):,} parameters")
    for note in converted.notes:
        print(f"note: {note}")


def _convert_to_onnx(folder: Path, out: Path, int8: bool) -> None:
    from malmoi.features.onnx_names import check_installed

    check_installed()
    from malmoi.checkpoint.conversion import read_folder
    from malmoi.data.outputs import refuse_old_folder
    from malmoi.features.onnx_export import export_onnx

    refuse_old_folder(out)
    converted = read_folder(folder)
    with writing(out):
        written = export_onnx(converted, out, int8=int8, source=folder)
    print(f"{written}: {converted.system}, {written.stat().st_size:,} bytes")
    if "pooler" in converted.absent:
        print("note: the pooler is not in the files; there is no pooler_output")
