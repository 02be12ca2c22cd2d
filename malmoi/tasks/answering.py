"""answer: the piece of a context that answers a question. A long context is read in windows that overlap.

B windows, T positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from malmoi.blocks.head import Head
from malmoi.objectives.task import LossPart
from malmoi.tasks.answer_metrics import score_answers, score_answers_or_none
from malmoi.tasks.encoding import TextEncoder
from malmoi.tasks.examples import Question
from malmoi.tasks.kind import Kind, Mistake
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.predictions import Reply
from malmoi.tasks.ragged import Items, TaskBatch, encode_batch, lay_items, to_tensor
from malmoi.tasks.spans import Window, find_answer, mark_answer
from malmoi.values import IGNORED

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_QUESTION_SHARE = 4  # a question takes at most this part of a sequence


class Answering(Kind[Question, Reply]):
    metric: ClassVar[str] = "f1"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "exact_match")
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
        for owner, (encoding, example) in enumerate(zip(encodings, examples, strict=True)):
            for window in (encoding, *encoding.overflowing):
                places = np.array(
                    [
                        offsets if side == 1 and offsets[1] > offsets[0] else (-1, -1)
                        for offsets, side in zip(window.offsets, window.sequence_ids, strict=True)
                    ],
                    np.int32,
                )
                windows.append([window])
                owners.append(owner)
                notes.append(places)
                targets.append((0, 0))
                if example.answers:
                    answer = example.answers[0]
                    targets[-1] = mark_answer(places, answer.start, answer.start + len(answer.text))
        return lay_items(windows, owners, targets=np.array(targets, np.int64), notes=np.concatenate(notes))

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
        gold = {one.id: [answer.text for answer in one.answers or ()] for one in examples}
        found = {
            example.id: "" if reply.answer is None else reply.answer.text
            for example, reply in zip(examples, predictions, strict=True)
        }
        if any(one.impossible for one in examples):
            return score_answers_or_none(gold, found)
        return score_answers(gold, found)

    def find_mistake(self, example: Question, prediction: Reply) -> Mistake | None:
        expected = [answer.text for answer in example.answers or ()]
        found = "no answer" if prediction.answer is None else prediction.answer.text
        if found in (expected or ["no answer"]):
            return None
        score = prediction.no_answer_score if prediction.answer is None else prediction.answer.score
        return Mistake(example.question, expected[0] if expected else "no answer", found, score)

    def to_record(self, example: Question, prediction: Reply) -> dict[str, Any]:
        candidates = [
            {"text": one.text, "start": one.start, "end": one.end, "score": one.score} for one in prediction.candidates
        ]
        answer = candidates[0] if prediction.answer is not None else {"text": "", "start": None, "end": None}
        return {
            "id": example.id,
            **{name: answer[name] for name in ("text", "start", "end")},
            "score": prediction.no_answer_score if prediction.answer is None else prediction.answer.score,
            "no_answer_score": prediction.no_answer_score,
            "candidates": candidates,
        }
