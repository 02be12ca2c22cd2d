"""The methods of every model that may have a head for a task, whatever computes it.

Whoever wants a vector need not wait for what the tasks import: each method imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from malmoi.tasks.kinds import Model
    from malmoi.tasks.predictions import Chosen, Classification, Reply, Similarity, Tagging


class DoesTasks:
    """Whoever has a model, a tokenizer and a head has these."""

    def classify(self: Model, texts: Sequence[str | tuple[str, str]]) -> list[Classification]:
        """The label of each text, or of each pair of texts, by a model fine-tuned for it."""
        from malmoi.tasks.use import classify_texts

        return classify_texts(self, texts)

    def tag(self: Model, texts: Sequence[str]) -> list[Tagging]:
        """The tags and entities of each text, with the characters where they stand."""
        from malmoi.tasks.use import tag_texts

        return tag_texts(self, texts)

    def answer(self: Model, question: str, context: str) -> Reply:
        """The piece of the context that answers the question, if it holds one."""
        from malmoi.tasks.use import answer_question

        return answer_question(self, question, context)

    def choose(self: Model, prompt: str, choices: Sequence[str]) -> Chosen:
        """The choice that goes best with the prompt."""
        from malmoi.tasks.use import choose_continuation

        return choose_continuation(self, prompt, choices)

    def similar(self: Model, first: str, second: str) -> Similarity:
        """How alike two texts are: by the model's head where it scores pairs, else by the cosine of their vectors."""
        from malmoi.tasks.use import compare_texts

        return compare_texts(self, first, second)
