"""What people hold in their hands: a model that fills gaps, gives vectors and so on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from malmoi.checkpoint.bundle import Bundle, create_bundle, load_bundle
from malmoi.features.embedder import Embedder
from malmoi.features.filling import Fill, fill_gaps
from malmoi.features.torch_engine import TorchEngine
from malmoi.features.vectors import GivesVectors
from malmoi.text.given import Text
from malmoi.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from malmoi.tasks.predictions import Chosen, Classification, Reply, Similarity, Tagging

# Whoever wants a vector need not wait for what the tasks import: they are imported by the methods that are about them.


class Pretrained(Bundle, GivesVectors):
    """A model, its tokenizer and its configuration, ready for use. `model` is the torch module itself."""

    @property
    def embedder(self) -> Embedder:
        """What makes vectors of this model as it now is."""
        return Embedder(TorchEngine(self), self.tokenizer, self.sentence)

    def fill(self, text: str, top: int = 5) -> list[list[Fill]]:
        """For each [MASK] of the text, the pieces that fit best."""
        return fill_gaps(self, text, top)

    # A string is a sequence of strings too: that one text gets one answer is not seen in its type.
    @overload
    def classify(self, texts: str) -> Classification: ...  # type: ignore[overload-overlap]
    @overload
    def classify(self, texts: Iterable[Text]) -> list[Classification]: ...
    def classify(self, texts: str | Iterable[Text]) -> Classification | list[Classification]:
        """The label of a text, or of each of several texts or pairs of texts, by a model fine-tuned for it."""
        from malmoi.tasks.use import classify_texts

        return classify_texts(self, texts)

    @overload
    def score(self, texts: str) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, texts: Iterable[Text]) -> list[float]: ...
    def score(self, texts: str | Iterable[Text]) -> float | list[float]:
        """The number of a text, or of each of several texts or pairs of texts, by a model fine-tuned on numbers."""
        from malmoi.tasks.use import score_texts

        return score_texts(self, texts)

    @overload
    def tag(self, texts: str) -> Tagging: ...  # type: ignore[overload-overlap]
    @overload
    def tag(self, texts: Iterable[str]) -> list[Tagging]: ...
    def tag(self, texts: str | Iterable[str]) -> Tagging | list[Tagging]:
        """The tags and entities of a text, or of each of several, with the characters where they stand."""
        from malmoi.tasks.use import tag_texts

        return tag_texts(self, texts)

    def answer(self, question: str, context: str, *, threshold: float | None = None) -> Reply:
        """The piece of the context that answers the question, if it holds one; none is taken where it is better by more
        than the threshold, by default as the model was trained."""
        from malmoi.tasks.use import answer_question

        return answer_question(self, question, context, threshold)

    def choose(self, prompt: str, choices: Iterable[str]) -> Chosen:
        """The choice that goes best with the prompt."""
        from malmoi.tasks.use import choose_continuation

        return choose_continuation(self, prompt, choices)

    @overload
    def similar(self, first: str, second: str) -> Similarity: ...  # type: ignore[overload-overlap]
    @overload
    def similar(self, first: str, second: Iterable[str]) -> list[Similarity]: ...
    def similar(self, first: str, second: str | Iterable[str]) -> Similarity | list[Similarity]:
        """How alike a text is to another, or to each of several: by the model's head where it scores pairs, else by the
        cosine of their vectors."""
        from malmoi.tasks.use import compare_texts

        return compare_texts(self, first, second)


def load_with_torch(model: str | Path) -> Pretrained:
    """Read a model from a Hugging Face folder, or from the hub by its id (owner/name). It is in eval mode."""
    return Pretrained(**vars(load_bundle(model)))


def create(preset: str | Any, tokenizer: Tokenizer, seed: int = 0) -> Pretrained:
    """A new model for a tokenizer, from a preset such as bert-mini or from a configuration.

    Its weights depend on the seed only.
    """
    return Pretrained(**vars(create_bundle(preset, tokenizer, seed)))
