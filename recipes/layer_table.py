"""The BERT paper's table of layers as features: a frozen encoder, a BiLSTM tagger on top, entity F1 for each choice.

    python recipes/layer_table.py MODEL ../shared/data/klue/klue-ner-v1.1_dev.tsv

The paper has CoNLL-2003 and BERT base; here it is KLUE-NER, words instead of characters, and any model. As in the
paper, a word is what its first piece has become: the embedding of that piece knows nothing of the rest of the word.
What should come out is the order: the embeddings alone are worst, the last four layers together are at least as good as
the last, and the same pipeline on untrained weights is below all of them; otherwise the tagger, not the features, would
solve it.
"""

from __future__ import annotations

import hashlib
import json as json_format
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cyclopts
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

import malmoi
from malmoi.tasks.entities import score_entities
from malmoi.tasks.reading import read_examples

_LONGEST_TOKENS = 200


@dataclass(frozen=True)
class Choice:
    """Which layers (0 are the embeddings); several are mixed or laid end to end."""

    name: str
    layers: Sequence[int]
    mixed: bool = False


def main(
    model: str,
    file: Path,
    /,
    *,
    train: int = 1200,
    test: int = 400,
    last: int = 4,
    epochs: int = 8,
    seeds: int = 1,
    json: Path | None = None,
) -> None:
    """Train a tagger for each choice of layers and print the table.

    Args:
        model: Folder of a model, or a hub id.
        file: Words with tags: CoNLL, or a character a line as in KLUE-NER.
        train: How many sentences to train on; the next ones are for testing.
        last: How many of the last layers to take together.
        seeds: Runs to average over.
        json: Where to write the figures.
    """
    bert = malmoi.load(model)
    limit = min(_LONGEST_TOKENS, bert.config.max_position_embeddings)
    sentences = [one for one in read_words(file) if len(bert.tokenizer.encode(" ".join(one[0])).ids) <= limit]
    sentences = sentences[: train + test]
    tags = sorted({tag for _, labels in sentences for tag in labels})
    labels = [torch.tensor([tags.index(tag) for tag in some]) for _, some in sentences]
    top = bert.config.num_hidden_layers
    before = digest(bert.model)
    features = extract(bert, sentences)
    untrained = extract(malmoi.create(bert.config, bert.tokenizer), sentences, [top])
    choices = [
        Choice("embeddings (h_0)", [0]),
        Choice("second-to-last", [top - 1]),
        Choice("last", [top]),
        Choice(f"weighted sum of last {last}", range(top - last + 1, top + 1), mixed=True),
        Choice(f"concat of last {last}", range(top - last + 1, top + 1)),
        Choice("weighted sum of all", range(1, top + 1), mixed=True),
    ]
    figures: dict[str, list[float]] = {}
    for seed in range(seeds):
        for choice in choices:
            chosen = [one[:, list(choice.layers)] for one in features]
            score = measure(chosen, labels, tags, train, choice.mixed, epochs, seed)
            figures.setdefault(choice.name, []).append(score)
            print(f"{choice.name:28} {score:.1f}", file=sys.stderr, flush=True)
        figures.setdefault("last, untrained weights", []).append(
            measure(untrained, labels, tags, train, False, epochs, seed)
        )
    assert digest(bert.model) == before, "the encoder was to stay as it is"
    print("| features | F1 |\n|---|---:|")
    for name, scores in figures.items():
        print(f"| {name} | {statistics.mean(scores):.1f} |")
    if json is not None:
        json.write_text(json_format.dumps(figures, indent=1) + "\n")


def read_words(file: Path) -> list[tuple[list[str], list[str]]]:
    """Sentences as words with tags. Where the file has a character a line, a word's tag is that of its first one."""
    sentences = []
    for sentence in read_examples("tag", [file], labelled=True):
        if any(word.isspace() for word in sentence.words):
            found = list(re.finditer(r"\S+", "".join(sentence.words)))
            sentences.append(([word.group() for word in found], [sentence.tags[word.start()] for word in found]))
        else:
            sentences.append((list(sentence.words), list(sentence.tags)))
    return sentences


def extract(
    bert: malmoi.Pretrained, sentences: list[tuple[list[str], list[str]]], layers: list[int] | None = None
) -> list[Tensor]:
    """For each sentence (words, layers, hidden)."""
    layers = list(range(bert.config.num_hidden_layers + 1)) if layers is None else layers
    found = bert.words([words for words, _ in sentences], layers=layers, pieces="first")
    return [torch.from_numpy(one.vectors).view(len(one.words), len(layers), -1) for one in found]


class Tagger(nn.Module):
    """A BiLSTM over the words of a sentence."""

    def __init__(self, layers: int, hidden: int, tags: int, mixed: bool) -> None:
        super().__init__()
        self.mix = malmoi.ScalarMix(layers) if mixed else None
        self.lstm = nn.LSTM(hidden if mixed else layers * hidden, 128, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.output = nn.Linear(256, tags)

    def forward(self, features: Tensor) -> Tensor:
        """(B, W, layers, hidden) → (B, W, tags)"""
        joined = features.flatten(2) if self.mix is None else self.mix(features.unbind(dim=2))
        scores: Tensor = self.output(self.dropout(self.lstm(self.dropout(joined))[0]))
        return scores


def measure(
    features: list[Tensor], labels: list[Tensor], tags: list[str], train: int, mixed: bool, epochs: int, seed: int
) -> float:
    """Entity F1, in per cent, of a tagger trained on the first sentences and tested on the others."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    tagger = Tagger(features[0].shape[1], features[0].shape[2], len(tags), mixed)
    optimizer = torch.optim.Adam(tagger.parameters(), lr=2e-3)
    for _ in range(epochs):
        order = random.permutation(train)
        for begin in range(0, train, 32):
            some = order[begin : begin + 32]
            inputs = pad_sequence([features[place] for place in some], batch_first=True)
            wanted = pad_sequence([labels[place] for place in some], batch_first=True, padding_value=-100)
            optimizer.zero_grad()
            nn.functional.cross_entropy(tagger(inputs).flatten(0, 1), wanted.flatten()).backward()
            optimizer.step()
    tagger.eval()
    with torch.inference_mode():
        found = [[tags[best] for best in tagger(one[None])[0].argmax(dim=-1)] for one in features[train:]]
    return 100 * score_entities([[tags[tag] for tag in wanted] for wanted in labels[train:]], found).f1


def digest(model: nn.Module) -> str:
    whole = hashlib.sha256()
    for tensor in model.state_dict().values():
        whole.update(tensor.numpy().tobytes())
    return whole.hexdigest()


if __name__ == "__main__":
    cyclopts.run(main)
