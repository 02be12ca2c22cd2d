"""The engine for machines without torch: ONNX Runtime on the processor, single precision or int8.

It reads a folder that `malmoi convert --to onnx` wrote, and any other of that layout. Nothing here imports torch.

B sequences, T positions, L layers.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from malmoi.config import read_object
from malmoi.errors import MalmoiError
from malmoi.features.engine import EngineOutput
from malmoi.features.onnx_names import (
    FOLDER,
    HEAD,
    INPUTS,
    INT8_MODEL,
    LAST,
    LOGITS,
    MODEL,
    POOLER,
    check_installed,
    name_layer,
)

if TYPE_CHECKING:
    import onnx

# The operators that ONNX Runtime has itself; any other set would have to come from a library.
_OPERATORS = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}
_FATAL = 4
SIZES = ("num_hidden_layers", "hidden_size", "max_position_embeddings", "vocab_size")


class OnnxEngine:
    """Hidden states of a model in the ONNX format."""

    def __init__(self, folder: Path, file: str | None = None, threads: int | None = None) -> None:
        """Open `file`, a name in the folder's onnx/; by default model.onnx, or else model_int8.onnx."""
        self.path = find_onnx(folder, file)
        sizes = _read_sizes(folder / "config.json")
        self.num_hidden_layers, self.hidden_size, self.max_positions, self._vocabulary = sizes
        self._session = _open_session(self.path, threads or _count_cores())
        self._inputs = {one.name for one in self._session.get_inputs()}
        outputs = {one.name: one.shape for one in self._session.get_outputs()}
        if not {"input_ids", "attention_mask"} <= self._inputs <= set(INPUTS):
            raise MalmoiError(
                f"{self.path}: the inputs are {', '.join(sorted(self._inputs))}, not {', '.join(INPUTS)}."
            )
        if LAST not in outputs or outputs[LAST][-1] not in (self.hidden_size, None):
            raise MalmoiError(f"{self.path}: an output {LAST} of size {self.hidden_size} is needed; export it again.")
        self._outputs = set(outputs)
        self.has_pooler = POOLER in outputs
        # The shape of the head for a task, if there is one.
        self.head: str | None = (
            self._session.get_modelmeta().custom_metadata_map.get(HEAD) if LOGITS in outputs else None
        )

    def run(
        self,
        input_ids: NDArray[np.int64],  # (B, T)
        token_type_ids: NDArray[np.int64],  # (B, T)
        attention_mask: NDArray[np.bool_] | None,  # (B, T); None where nothing is padded
        layers: Collection[int],
        pooler: bool,
    ) -> EngineOutput:
        """Compute `layers` (0 to L), and the pooler's output where it is asked for."""
        self._check(input_ids, layers, pooler)
        names = {layer: name_layer(layer, self.num_hidden_layers) for layer in layers}
        wanted = list(dict.fromkeys([*names.values(), *([POOLER] if pooler else [])]))
        # Without a name ONNX Runtime would give all outputs.
        results = self._compute(wanted, input_ids, token_type_ids, attention_mask) if wanted else []
        found = dict(zip(wanted, results, strict=True))
        return EngineOutput({layer: found[name] for layer, name in names.items()}, found.get(POOLER))

    def run_head(
        self,
        input_ids: NDArray[np.int64],
        token_type_ids: NDArray[np.int64],
        attention_mask: NDArray[np.bool_] | None,
    ) -> NDArray[np.float32]:
        self._check(input_ids, (), False)
        [logits] = self._compute([LOGITS], input_ids, token_type_ids, attention_mask)
        return logits

    def _compute(
        self,
        wanted: list[str],
        input_ids: NDArray[np.int64],
        token_type_ids: NDArray[np.int64],
        attention_mask: NDArray[np.bool_] | None,
    ) -> list[NDArray[np.float32]]:
        mask = np.ones_like(input_ids) if attention_mask is None else attention_mask.astype(np.int64)
        given = dict(zip(INPUTS, (input_ids, mask, token_type_ids), strict=True))
        try:
            return list(self._session.run(wanted, {name: given[name] for name in self._inputs}))
        except Exception as failure:  # the library's errors have no common class
            raise MalmoiError(f"{self.path} could not be computed ({_first_line(failure)}).") from None

    def _check(self, input_ids: NDArray[np.int64], layers: Collection[int], pooler: bool) -> None:
        length = input_ids.shape[1]
        if length > self.max_positions:
            raise MalmoiError(
                f"a sequence of {length} tokens is longer than the model's {self.max_positions} positions; cut it, or "
                "use a model with a larger max_position_embeddings."
            )
        if input_ids.size and not 0 <= input_ids.min() <= input_ids.max() < self._vocabulary:
            raise MalmoiError(f"{self.path}: token ids must be from 0 to {self._vocabulary - 1:,}.")
        for layer in layers:
            if not 0 <= layer <= self.num_hidden_layers:
                raise MalmoiError(f"there is no layer {layer}; the model's are 0 to {self.num_hidden_layers}.")
            if name_layer(layer, self.num_hidden_layers) not in self._outputs:
                raise MalmoiError(
                    f"{self.path} gives the last layer only, not layer {layer}; "
                    "write it anew with: malmoi convert MODEL --to onnx --out DIR"
                )
        if pooler and not self.has_pooler:
            raise MalmoiError(f"{self.path} has no pooler.")


def find_onnx(folder: Path, file: str | None = None) -> Path:
    """The ONNX file of a folder."""
    names = [MODEL, INT8_MODEL] if file is None else [file]
    for name in names:
        if Path(name).name != name:
            raise MalmoiError(f"{name!r} must be the name of a file in {folder / FOLDER}.")
        if (folder / FOLDER / name).is_file():
            return folder / FOLDER / name
    raise MalmoiError(
        f"{folder} holds no {FOLDER}/{names[0]}; write one with: malmoi convert {folder} --to onnx --out DIR"
    )


def _read_sizes(path: Path) -> tuple[int, int, int, int]:
    content = read_object(path)
    for name in SIZES:
        value = content.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise MalmoiError(f"{path}: {name} must be a number from 1; it is {value!r}.")
    layers, size, positions, vocabulary = (content[name] for name in SIZES)
    return layers, size, positions, vocabulary


def _open_session(path: Path, threads: int) -> Any:
    check_installed()
    import onnxruntime

    _check_file(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = _FATAL  # what goes wrong is said once, by the exception
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as failure:  # the library's errors have no common class
        raise MalmoiError(f"{path} cannot be opened ({_first_line(failure)}).") from None


def _check_file(path: Path) -> None:
    """Refuse what a stranger's file could do beyond computing: read other files, or need a library of operators."""
    import onnx
    from onnx.external_data_helper import uses_external_data

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception:  # bytes from strangers make the reader fail in every way there is
        model = None
    if model is None or not model.graph.output:
        raise MalmoiError(f"{path} is damaged or no ONNX file; write it again.")
    for tensor in _walk_tensors(model.graph):
        if uses_external_data(tensor):
            _check_place(path, {entry.key: entry.value for entry in tensor.external_data}.get("location", ""))
    foreign = sorted({one.domain for one in model.opset_import} - _OPERATORS)
    if foreign or model.functions:
        named = foreign[0] if foreign else model.functions[0].domain
        raise MalmoiError(f"{path}: operators of {named!r} would need a library of their own, which is never loaded.")


def _walk_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a graph, wherever in it they can stand."""
    yield from graph.initializer
    sparse = [*graph.sparse_initializer]
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            sparse += [attribute.sparse_tensor, *attribute.sparse_tensors]
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _walk_tensors(inner)
    for one in sparse:
        yield from (one.values, one.indices)


def _check_place(path: Path, location: str) -> None:
    folder = path.parent.resolve()
    if not location or not (folder / location).resolve().is_relative_to(folder):
        raise MalmoiError(f"{path}: weights in {location!r} are refused; only files beside it are read.")


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first_line(failure: Exception) -> str:
    return next(iter(str(failure).strip().splitlines()), type(failure).__name__)[:300]
