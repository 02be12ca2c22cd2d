"""Small models for tests: a tokenizer learned from composed Korean, and a BERT whose every weight matters."""

import torch
from corpora import korean_documents

from malmoi.pretrained import Pretrained, create
from malmoi.systems.bert import BertConfig
from malmoi.text.tokenizer_training import train_tokenizer

SMALL = BertConfig(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=48
)
# A small configuration of every system, for the tests that all of them have to pass.
SMALL_CONFIGS = {"bert": SMALL}
SENTENCES = [
    "학생들이 어제 도서관에서 책을 읽었습니다.",
    "고양이가 밤늦게 부엌에서 노래를 불렀어요. 할머니가 보았다.",
    "말모이를 모았습니다.",
]


def make_model(seed: int = 0) -> Pretrained:
    """Weights that are nowhere zero or one, so that a forgotten bias or norm shows."""
    tokenizer = train_tokenizer(korean_documents(60), kind="wordpiece", vocab_size=400)
    pretrained = create(SMALL, tokenizer, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in pretrained.model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return pretrained


def padded_inputs(tokenizer, texts):
    """Texts of several lengths as one batch of tensors."""
    encoded = [tokenizer.encode(text) for text in texts]
    width = max(len(one.ids) for one in encoded)

    def pad(rows, value):
        return torch.tensor([row + [value] * (width - len(row)) for row in rows])

    return {
        "input_ids": pad([one.ids for one in encoded], tokenizer.pad_id),
        "token_type_ids": pad([one.token_type_ids for one in encoded], 0),
        "attention_mask": pad([[1] * len(one.ids) for one in encoded], 0),
    }
