"""Short names of published models: they lead to the hub, and no preset has one."""

import pytest

from malmoi.catalog import SYSTEMS
from malmoi.hub_names import suggest_hub_id


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_preset_is_called_like_a_published_model(system):
    assert not [name for name in SYSTEMS[system].presets if suggest_hub_id(name)]
    # Casing and language belong to a vocabulary that somebody published, not to a size.
    assert not [name for name in SYSTEMS[system].presets if name.endswith(("cased", "multilingual", "chinese"))]


def test_spellings():
    assert suggest_hub_id("BERT_base_uncased") == "google-bert/bert-base-uncased"
    assert suggest_hub_id("bert-base") is None and suggest_hub_id("google-bert/bert-base-uncased") is None
