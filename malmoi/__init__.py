"""malmoi: pre-train, fine-tune and use the BERT family on your own text."""

from importlib import import_module
from typing import TYPE_CHECKING

from malmoi.errors import MalmoiError

if TYPE_CHECKING:
    from malmoi.blocks.scalar_mix import ScalarMix
    from malmoi.data.prepare import prepare_store
    from malmoi.data.store import Store
    from malmoi.loading import load
    from malmoi.objectives.examples import Examples
    from malmoi.objectives.options import ExampleOptions
    from malmoi.pretrained import Pretrained, create
    from malmoi.runs import finetune, pretrain
    from malmoi.tasks.columns import Columns
    from malmoi.tasks.options import FinetuningOptions
    from malmoi.text.reading import Corpus, ReadOptions
    from malmoi.text.tokenizer import Tokenizer, load_tokenizer
    from malmoi.text.tokenizer_training import train_tokenizer
    from malmoi.training.options import TrainingOptions

__version__ = "0.1.0"

__all__ = [
    "Columns",
    "Corpus",
    "ExampleOptions",
    "Examples",
    "FinetuningOptions",
    "MalmoiError",
    "Pretrained",
    "ReadOptions",
    "ScalarMix",
    "Store",
    "Tokenizer",
    "TrainingOptions",
    "__version__",
    "create",
    "finetune",
    "load",
    "load_tokenizer",
    "prepare_store",
    "pretrain",
    "train_tokenizer",
]

# Where each name lives. They are imported when first used, so that `import malmoi` and the command line start at once.
_HOMES = {
    "Columns": "malmoi.tasks.columns",
    "Corpus": "malmoi.text.reading",
    "ExampleOptions": "malmoi.objectives.options",
    "Examples": "malmoi.objectives.examples",
    "FinetuningOptions": "malmoi.tasks.options",
    "Pretrained": "malmoi.pretrained",
    "ReadOptions": "malmoi.text.reading",
    "ScalarMix": "malmoi.blocks.scalar_mix",
    "Store": "malmoi.data.store",
    "Tokenizer": "malmoi.text.tokenizer",
    "TrainingOptions": "malmoi.training.options",
    "create": "malmoi.pretrained",
    "finetune": "malmoi.runs",
    "load": "malmoi.loading",
    "load_tokenizer": "malmoi.text.tokenizer",
    "prepare_store": "malmoi.data.prepare",
    "pretrain": "malmoi.runs",
    "train_tokenizer": "malmoi.text.tokenizer_training",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'malmoi' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
