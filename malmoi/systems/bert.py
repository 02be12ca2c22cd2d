"""BERT (Devlin et al., 2018): a bidirectional encoder, pre-trained to restore hidden words and to judge sentence pairs.

Differs from the Transformer's encoder by:
- positions that are learned, and a second table for the segment (A or B) of a token;
- a layer norm right after the embeddings;
- GELU in the feed-forward network;
- a pooler: tanh of a linear layer on the first token, [CLS];
- two heads: hidden words, with the embedding table as output matrix, and the next sentence.

B sequences, T positions, L layers, V words of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from malmoi.blocks.attention import SelfAttention
from malmoi.blocks.dropout import Dropout
from malmoi.blocks.feed_forward import FeedForward, find_activation
from malmoi.blocks.head import Head, Shape
from malmoi.blocks.heads import HeadForm, PooledHead, TokenHead
from malmoi.blocks.output import EncoderOutput
from malmoi.config import require_numbers
from malmoi.errors import MalmoiError
from malmoi.weightmap import Row, WeightMap, linear_rows, row


@dataclass(frozen=True)
class BertConfig:
    """The fields and defaults of a BERT `config.json`."""

    model_type: ClassVar[str] = "bert"

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    def __post_init__(self) -> None:
        sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        require_numbers(self, (*sizes, "max_position_embeddings", "type_vocab_size"), 1)
        require_numbers(self, ("hidden_dropout_prob", "attention_probs_dropout_prob"), 0, below=1)
        require_numbers(self, ("layer_norm_eps", "initializer_range"), 0)
        if self.hidden_size % self.num_attention_heads:
            raise MalmoiError(
                f"hidden_size {self.hidden_size} cannot be divided among num_attention_heads "
                f"{self.num_attention_heads}; choose a multiple of it."
            )


_BASE = BertConfig()


def _size(layers: int, hidden: int, heads: int) -> BertConfig:
    return replace(
        _BASE,
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
    )


# Sizes of new models. No published model is called by these names: bert-base-uncased, say, means weights of the hub.
PRESETS = {
    "bert-tiny": _size(2, 128, 2),
    "bert-mini": _size(4, 256, 4),
    "bert-small": _size(4, 512, 8),
    "bert-medium": _size(8, 512, 8),
    "bert-base": _BASE,
    "bert-large": _size(24, 1024, 16),
}


class Embeddings(nn.Module):
    """Word + position + segment, normed."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segments = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, words: Tensor, token_type_ids: Tensor | None, position_ids: Tensor | None) -> Tensor:
        """words: (B, T, hidden), looked up already"""
        length, limit = words.shape[1], self.positions.num_embeddings
        if position_ids is None and length > limit:
            raise MalmoiError(
                f"a sequence of {length} tokens is longer than the model's {limit} positions; cut it, or use a model "
                "with a larger max_position_embeddings."
            )
        positions = self.positions.weight[:length] if position_ids is None else self.positions(position_ids)
        segments = self.segments.weight[0] if token_type_ids is None else self.segments(token_type_ids)
        embedded: Tensor = self.dropout(self.norm(words + positions + segments))
        return embedded


class Layer(nn.Module):
    """Attention, then feed-forward; each is dropped out, added to its input, and normed."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(
            config.hidden_size, config.num_attention_heads, config.attention_probs_dropout_prob
        )
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(config.hidden_size, config.intermediate_size, config.hidden_act)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(
        self, x: Tensor, mask: Tensor | None, head_mask: Tensor | None, output_attentions: bool
    ) -> tuple[Tensor, Tensor | None]:
        attended, weights = self.attention(x, mask, head_mask, output_attentions)
        x = self.attention_norm(x + self.dropout(attended))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x))), weights


class WordHead(nn.Module):
    """Hidden states → what the embedding table is multiplied with; the bias of the logits is its own."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self._activation = find_activation(config.hidden_act)

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        normed: Tensor = self.norm(self._activation(self.transform(hidden)))
        return normed


class Bert(nn.Module):
    """The encoder with its pooler and the two heads of pre-training; for a task it is without those not needed."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size)
        self.word_head = WordHead(config)
        self.next_sentence_head = nn.Linear(config.hidden_size, 2)
        self.apply(self.initialise)

    def initialise(self, module: nn.Module) -> None:
        """Give one module the weights that a new model starts from."""
        if isinstance(module, nn.Linear | nn.Embedding):
            # Cut at two standard deviations, as in the original.
            deviation = self.config.initializer_range
            nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, T)
        attention_mask: Tensor | None = None,  # (B, T): true or 1 for tokens, false or 0 for padding
        token_type_ids: Tensor | None = None,  # (B, T)
        position_ids: Tensor | None = None,  # (B, T) or (1, T)
        inputs_embeds: Tensor | None = None,  # (B, T, hidden) instead of input_ids
        head_mask: Tensor | None = None,  # (H,) or (L, H): how much of each head counts
        output_hidden_states: bool = False,
        output_attentions: bool = False,
    ) -> EncoderOutput:
        layers = self.run_layers(
            input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds, head_mask, output_attentions
        )
        hidden_states, attentions = zip(*layers, strict=True)
        return EncoderOutput(
            last_hidden_state=hidden_states[-1],
            pooler_output=None if self.pooler is None else self.pool(hidden_states[-1]),
            hidden_states=hidden_states if output_hidden_states else None,
            attentions=attentions[1:] if output_attentions else None,
        )

    def run_layers(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        head_mask: Tensor | None = None,
        output_attentions: bool = False,
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The output and the attention weights of each layer, computed when it is asked for; h_0 has no weights."""
        if (input_ids is None) == (inputs_embeds is None):
            raise MalmoiError("give either input_ids or inputs_embeds, not both and not none.")
        words = self.embeddings.words(input_ids) if inputs_embeds is None else inputs_embeds
        x = self.embeddings(words, token_type_ids, position_ids)
        yield x, None
        mask = None if attention_mask is None else attention_mask.bool()[:, None, None, :]  # (B, 1, 1, T)
        for number, layer in enumerate(self.layers):
            heads = head_mask if head_mask is None or head_mask.dim() == 1 else head_mask[number]
            x, weights = layer(x, mask, heads, output_attentions)
            yield x, weights

    def pool(self, hidden: Tensor) -> Tensor:
        """(B, T, hidden) → (B, hidden): what the next-sentence head is given."""
        return torch.tanh(self.pooler(hidden[:, 0]))

    def word_features(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """What the logits of the vocabulary are made of: features (…, hidden), output matrix (V, hidden), bias (V,)."""
        return self.word_head(hidden), self.embeddings.words.weight, self.word_head.bias

    def word_logits(self, hidden: Tensor) -> Tensor:
        """(…, hidden) → (…, V)"""
        return nn.functional.linear(*self.word_features(hidden))

    def next_sentence_logits(self, pooled: Tensor) -> Tensor:
        """(B, hidden) → (B, 2); class 0: B follows A, class 1: B is random."""
        logits: Tensor = self.next_sentence_head(pooled)
        return logits


_LAYER = "bert.encoder.layer.{i}"

ROWS: list[Row] = [
    row("embeddings.words.weight", "bert.embeddings.word_embeddings.weight"),
    row("embeddings.positions.weight", "bert.embeddings.position_embeddings.weight"),
    row("embeddings.segments.weight", "bert.embeddings.token_type_embeddings.weight"),
    *linear_rows("embeddings.norm", "bert.embeddings.LayerNorm"),
    *linear_rows(
        "layers.{i}.attention.qkv",
        f"{_LAYER}.attention.self.query",
        f"{_LAYER}.attention.self.key",
        f"{_LAYER}.attention.self.value",
    ),
    *linear_rows("layers.{i}.attention.output", f"{_LAYER}.attention.output.dense"),
    *linear_rows("layers.{i}.attention_norm", f"{_LAYER}.attention.output.LayerNorm"),
    *linear_rows("layers.{i}.feed_forward.inner", f"{_LAYER}.intermediate.dense"),
    *linear_rows("layers.{i}.feed_forward.output", f"{_LAYER}.output.dense"),
    *linear_rows("layers.{i}.feed_forward_norm", f"{_LAYER}.output.LayerNorm"),
    *linear_rows("pooler", "bert.pooler.dense"),
    *linear_rows("word_head.transform", "cls.predictions.transform.dense"),
    *linear_rows("word_head.norm", "cls.predictions.transform.LayerNorm"),
    row("word_head.bias", "cls.predictions.bias"),
    *linear_rows("next_sentence_head", "cls.seq_relationship"),
]


def weight_map(config: BertConfig) -> WeightMap:
    return WeightMap(ROWS, config.num_hidden_layers)


HEADS = {
    "pooler": "the pooler",
    "word_head": "the head for hidden words",
    "next_sentence_head": "the head for the next sentence",
}

ARCHITECTURES = {
    "BertForPreTraining": {"pooler", "word_head", "next_sentence_head"},
    "BertForMaskedLM": {"word_head"},
    "BertForNextSentencePrediction": {"pooler", "next_sentence_head"},
    "BertModel": set[str](),
}


def _build_head(config: BertConfig, head: Head) -> PooledHead | TokenHead:
    dropout = config.hidden_dropout_prob if head.dropout is None else head.dropout
    kind = PooledHead if head.shape in ("sequence", "choice") else TokenHead
    made = kind(config.hidden_size, head.outputs, 0.0 if head.shape == "span" else dropout)
    nn.init.trunc_normal_(
        made.output.weight,
        std=config.initializer_range,
        a=-2 * config.initializer_range,
        b=2 * config.initializer_range,
    )
    nn.init.zeros_(made.output.bias)
    return made


_POOLED = frozenset({"pooler"})
_CLASSIFIER = linear_rows("task_head.output", "classifier")
_ENDS = linear_rows("task_head.output", "qa_outputs")

TASK_HEADS: dict[Shape, HeadForm] = {
    "sequence": HeadForm("BertForSequenceClassification", _POOLED, _build_head, _CLASSIFIER),
    "tokens": HeadForm("BertForTokenClassification", frozenset(), _build_head, _CLASSIFIER),
    "span": HeadForm(
        "BertForQuestionAnswering", frozenset(), _build_head, linear_rows("task_head.output", "qa_outputs")
    ),
    "choice": HeadForm("BertForMultipleChoice", _POOLED, _build_head, _CLASSIFIER),
}

TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}

ONLY: dict[str, tuple[object, ...]] = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "quantization_config": (None,),
}
