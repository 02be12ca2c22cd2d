"""A model for runs of the command line."""

import pytest


@pytest.fixture(scope="session")
def small(tmp_path_factory, korean_store):
    """A folder with a tiny model to go on from: presets are too large for a test that runs many times."""
    from malmoi.pretrained import create
    from malmoi.systems.bert import BertConfig

    config = BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=64
    )
    folder = tmp_path_factory.mktemp("model") / "small"
    create(config, korean_store.tokenizer).save(folder)
    return folder
