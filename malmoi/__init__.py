"""malmoi: pre-train, fine-tune and use the BERT family on your own text."""

from malmoi.errors import MalmoiError

__version__ = "0.1.0"
__all__ = ["MalmoiError", "__version__"]
