"""The folder of a small Korean model."""

import pytest
from models import make_model


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "model"
    make_model().save(out)
    return out
