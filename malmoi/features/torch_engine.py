"""The engine that every model has: its own torch module, on the device where it lies."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from malmoi.checkpoint.bundle import Bundle
from malmoi.errors import MalmoiError
from malmoi.features.engine import EngineOutput


class TorchEngine:
    """Runs no layer and no pooler that nobody asked for; a CPU's results are handed over without a copy."""

    def __init__(self, bundle: Bundle) -> None:
        self._model: Any = bundle.model
        if not hasattr(self._model, "run_layers"):
            raise MalmoiError(f"{bundle.system} models give no vectors.")
        self.num_hidden_layers: int = bundle.config.num_hidden_layers
        self.hidden_size: int = bundle.config.hidden_size
        self.max_positions: int = bundle.config.max_position_embeddings
        self.has_pooler: bool = hasattr(self._model, "pooler") and "pooler" not in bundle.absent

    def run(
        self,
        input_ids: NDArray[np.int64],
        token_type_ids: NDArray[np.int64],
        attention_mask: NDArray[np.bool_] | None,
        layers: Collection[int],
        pooler: bool,
    ) -> EngineOutput:
        highest = self.num_hidden_layers if pooler else max(layers)
        hidden_states = {}
        pooled = None
        with self._inference() as device:
            ids = torch.from_numpy(input_ids).to(device)
            mask = None if attention_mask is None else torch.from_numpy(attention_mask).to(device)
            # Segment 0 throughout is one row that is added, not a table that is looked up.
            types = torch.from_numpy(token_type_ids).to(device) if token_type_ids.any() else None
            for number, (hidden, _) in enumerate(self._model.run_layers(ids, mask, types)):
                if number in layers:
                    hidden_states[number] = hidden.float().cpu().numpy()
                if number == highest:
                    pooled = self._model.pool(hidden).float().cpu().numpy() if pooler else None
                    break
        return EngineOutput(hidden_states, pooled)

    def attend(self, input_ids: NDArray[np.int64]) -> NDArray[np.float32]:
        with self._inference() as device:
            output = self._model(input_ids=torch.from_numpy(input_ids).to(device), output_attentions=True)
            weights: NDArray[np.float32] = torch.cat(output.attentions).float().cpu().numpy()
        return weights

    @contextmanager
    def _inference(self) -> Iterator[torch.device]:
        """Without gradients and without dropout, whatever mode the model is in; it is left as it was."""
        was_training = self._model.training
        if was_training:
            self._model.eval()
        try:
            with torch.inference_mode():
                yield next(self._model.parameters()).device
        finally:
            if was_training:
                self._model.train()
