"""The methods of every model that may have a head for a task, whatever computes it.

Whoever wants a vector need not wait for what the tasks import: each method imports it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, overload

from malmoi.text.given import Text

if TYPE_CHECKING:
    from malmoi.tasks.kinds import Model
    from malmoi.tasks.predictions import Chosen, Classification, Reply, Similarity, Tagging


class DoesTasks:
    """Whoever has a model, a tokenizer and a head has these."""

    # A string is a sequence of strings too: that one text gets one answer is not seen in its type.
    @overload
    def classify(self: Model, texts: str) -> Classification: ...  # type: ignore[overload-overlap]
    @overload
    def classify(self: Model, texts: Iterable[Text]) -> list[Classification]: ...
    def classify(self: Model, texts: str | Iterable[Text]) -> Classification | list[Classification]:
        """The label of a text, or of each of several texts or pairs of texts, by a model fine-tuned for it."""
        from malmoi.tasks.use import classify_texts

        return classify_texts(self, texts)

    @overload
    def score(self: Model, texts: str) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def score(self: Model, texts: Iterable[Text]) -> list[float]: ...
    def score(self: Model, texts: str | Iterable[Text]) -> float | list[float]:
        """The number of a text, or of each of several texts or pairs of texts, by a model fine-tuned on numbers."""
        from malmoi.tasks.use import score_texts

        return score_texts(self, texts)

    @overload
    def tag(self: Model, texts: str) -> Tagging: ...  # type: ignore[overload-overlap]
    @overload
    def tag(self: Model, texts: Iterable[str]) -> list[Tagging]: ...
    def tag(self: Model, texts: str | Iterable[str]) -> Tagging | list[Tagging]:
        """The tags and entities of a text, or of each of several, with the characters where they stand."""
        from malmoi.tasks.use import tag_texts

        return tag_texts(self, texts)

    def answer(self: Model, question: str, context: str, *, threshold: float | None = None) -> Reply:
        """The piece of the context that answers the question, if it holds one; none is taken where it is better by more
        than the threshold, by default as the model was trained."""
        from malmoi.tasks.use import answer_question

        return answer_question(self, question, context, threshold)

    def choose(self: Model, prompt: str, choices: Iterable[str]) -> Chosen:
        """The choice that goes best with the prompt."""
        from malmoi.tasks.use import choose_continuation

        return choose_continuation(self, prompt, choices)

    @overload
    def similar(self: Model, first: str, second: str) -> Similarity: ...  # type: ignore[overload-overlap]
    @overload
    def similar(self: Model, first: str, second: Iterable[str]) -> list[Similarity]: ...
    def similar(self: Model, first: str, second: str | Iterable[str]) -> Similarity | list[Similarity]:
        """How alike a text is to another, or to each of several: by the model's head where it scores pairs, else by the
        cosine of their vectors."""
        from malmoi.tasks.use import compare_texts

        return compare_texts(self, first, second)
