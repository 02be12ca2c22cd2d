"""answer: the piece of a context that answers a question. A long context is read in windows that overlap.

B windows, T positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import tokenizers
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.errors import MalmoiError
from malmoi.objectives.task import LossPart
from malmoi.tasks.answer_metrics import (
    find_best_thresholds,
    matches_exactly,
    score_answers,
    score_answers_or_none,
)
from malmoi.tasks.encoding import TextEncoder
from malmoi.tasks.examples import Question
from malmoi.tasks.kind import Kind, Mistake
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import Reply
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor
from malmoi.tasks.spans import Window, find_answer, mark_answer, shrink_answer
from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_QUESTION_SHARE = 4  # a question takes at most this part of a sequence


class Answering(Kind[Question, Reply]):
    metric: ClassVar[str] = "f1"
    reads_windows: ClassVar[bool] = True
    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact_match")
    fields: ClassVar[tuple[str, ...]] = ("text", "start", "end", "score", "no_answer_score", "candidates")
    default_seq_len: ClassVar[int] = 384

    @classmethod
    def make_head(cls, examples: Sequence[Question], options: FinetuningOptions) -> Head:
        # Who has never seen a question without an answer always gives one.
        threshold = options.threshold if any(one.impossible for one in examples) else None
        settings = {"threshold": threshold, "max_answer": options.max_answer, "stride": options.stride}
        return Head("span", (), None, options.dropout, settings=settings)

    def _setting(self, name: str, default: Any) -> Any:
        return default if self.head is None else self.head.settings.get(name, default)

    def encode(self, examples: Sequence[Question]) -> Items:
        limit = self.seq_len // _QUESTION_SHARE
        questions = [self._cut(one.question, limit) for one in examples]
        stride = min(int(self._setting("stride", 128)), self.seq_len // 3)
        encoder = TextEncoder(self.tokenizer, self.seq_len, cut="second", stride=stride)
        encodings = encoder.encode_with_offsets(
            [(question, one.context) for question, one in zip(questions, examples, strict=True)]
        )
        windows, owners, notes, targets = [], [], [], []
        shrunk = 0
        for owner, (encoding, example) in enumerate(zip(encodings, examples, strict=True)):
            own = [encoding, *encoding.overflowing]
            places = [_find_places(window) for window in own]
            answer = None
            if example.answers:
                answer = _find_answer(example, np.concatenate(places))
                shrunk += answer[1] - answer[0] < len(example.answers[0].text)
            windows += [[window] for window in own]
            owners += [owner] * len(own)
            notes += places
            targets += [(0, 0) if answer is None else mark_answer(one, *answer) for one in places]
        places_of_all = np.concatenate(notes)
        return lay_items(windows, owners, targets=np.array(targets, np.int64), notes=places_of_all, shrunk=shrunk)

    def _cut(self, question: str, limit: int) -> str:
        offsets = self.tokenizer.encode(question, specials=False).offsets
        return question if len(offsets) <= limit else question[: offsets[limit - 1][1]]

    def losses(self, model: Any, batch: TaskBatch, device: torch.device) -> dict[str, LossPart]:
        from torch.nn import functional

        assert batch.targets is not None
        ends = self.outputs(model, batch, device).float().transpose(1, 2)  # (B, 2, T)
        targets = to_tensor(np.where(batch.real[:, None], batch.targets, IGNORED), device)  # (B, 2)
        total = functional.cross_entropy(ends.flatten(0, 1), targets.flatten(), reduction="sum") / 2
        right = (ends.argmax(dim=2) == targets).all(dim=1).sum()
        return {self.loss_name: LossPart(total, int(batch.real.sum()), right)}

    def outputs(self, model: Any, batch: TaskBatch, device: torch.device) -> Tensor:
        """(B, T, 2); nothing begins or ends at padding."""
        import torch

        logits: Tensor = model.task_head(encode_batch(model, batch, device))
        if batch.attention_mask is not None:
            padding = ~to_tensor(batch.attention_mask, device)[:, :, None]
            logits = logits.masked_fill(padding, torch.finfo(logits.dtype).min)
        return logits

    def interpret(
        self, examples: Sequence[Question], items: Items, outputs: Sequence[NDArray[np.float32]]
    ) -> list[Reply]:
        assert items.notes is not None
        windows: list[list[Window]] = [[] for _ in examples]
        for item, logits in enumerate(outputs):
            places = items.notes[items.tokens(item)]
            windows[items.owners[item]].append(Window(logits[: len(places)], places))
        longest, threshold = int(self._setting("max_answer", 30)), self._setting("threshold", 0.0)
        return [
            find_answer(example.context, own, longest, threshold)
            for example, own in zip(examples, windows, strict=True)
        ]

    def measure(self, examples: Sequence[Question], predictions: Sequence[Reply]) -> dict[str, float]:
        gold = _gather_gold(examples)
        found = {
            str(number): "" if reply.answer is None else reply.answer.text for number, reply in enumerate(predictions)
        }
        if any(one.impossible for one in examples):
            return score_answers_or_none(gold, found)
        return score_answers(gold, found)

    def find_thresholds(self, examples: Sequence[Question], predictions: Sequence[Reply]) -> dict[str, float]:
        if not any(one.impossible for one in examples):
            return {}
        best = {
            str(number): reply.candidates[0].text if reply.candidates else ""
            for number, reply in enumerate(predictions)
        }
        margins = {str(number): reply.margin for number, reply in enumerate(predictions)}
        return find_best_thresholds(_gather_gold(examples), best, margins)

    def find_mistake(self, example: Question, prediction: Reply) -> Mistake | None:
        expected = [answer.text for answer in example.answers or ()]
        found = "no answer" if prediction.answer is None else prediction.answer.text
        if matches_exactly(expected, "" if prediction.answer is None else found):
            return None
        score = prediction.no_answer_score if prediction.answer is None else prediction.answer.score
        return Mistake(example.question, expected[0] if expected else "no answer", found, score)

    def to_record(self, example: Question, prediction: Reply) -> dict[str, Any]:
        candidates = [
            {"text": one.text, "start": one.start, "end": one.end, "score": one.score} for one in prediction.candidates
        ]
        answer = candidates[0] if prediction.answer is not None else {"text": "", "start": None, "end": None}
        return {
            **{name: answer[name] for name in ("text", "start", "end")},
            "score": prediction.no_answer_score if prediction.answer is None else prediction.answer.score,
            "no_answer_score": prediction.no_answer_score,
            "candidates": candidates,
        }


def take_threshold(head: Head | None, threshold: float | None) -> Head | None:
    """The same head with another threshold for no answer, if one is asked for."""
    if threshold is None:
        return head
    if head is None or head.shape != "span":
        raise MalmoiError("--threshold is for a model that answers questions; leave it out.")
    if not math.isfinite(threshold):
        raise MalmoiError(f"--threshold {threshold}: give a number, such as 0.5 or -2.")
    return replace(head, settings={**head.settings, "threshold": threshold})


def _find_places(window: tokenizers.Encoding) -> NDArray[np.int32]:
    """The characters of the context that each token of a window stands for, -1 where it stands for none. (T, 2)"""
    places = np.array(window.offsets, np.int32)
    of_context = np.array([side == 1 for side in window.sequence_ids]) & (places[:, 1] > places[:, 0])
    places[~of_context] = -1
    return places


def _find_answer(question: Question, places: NDArray[np.int32]) -> tuple[int, int]:
    """The characters of the answer to be learned, as far as tokens stand for them."""
    assert question.answers
    answer = question.answers[0]
    found = shrink_answer(places, answer.start, answer.start + len(answer.text))
    if found is None:
        # The place of a question in SQuAD's form already names it.
        name = "" if question.place.endswith(question.id) else f", question {question.id}"
        raise MalmoiError(
            f"{question.place}{name}: the answer {answer.text!r} holds nothing that the tokenizer makes a token of; "
            "mend it or take the question out."
        )
    return found


def _gather_gold(examples: Sequence[Question]) -> dict[str, list[str]]:
    """The answers of each question by its number: two questions may have one id."""
    return {str(number): [answer.text for answer in one.answers or ()] for number, one in enumerate(examples)}
