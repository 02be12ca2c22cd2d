"""What callers give as texts is looked at before anything is computed."""

import numpy as np
import pytest

from malmoi import MalmoiError
from malmoi.text.given import take_texts, take_texts_or_pairs


class Table:
    """As a table of pandas looks: going through it gives the names of its columns."""

    ndim = 2

    def __iter__(self):
        return iter(["text", "label"])


def test_a_text_alone_and_several():
    assert take_texts("글") == (["글"], True)
    for several in (["글", ""], ("글", ""), (text for text in ("글", "")), np.array(["글", ""])):
        assert take_texts(several) == (["글", ""], False)
    assert take_texts([]) == ([], False)
    assert take_texts_or_pairs(["글", ("가", "나"), ["다", "라"]]) == (["글", ("가", "나"), ("다", "라")], False)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (None, "a list of texts is needed, but this is None"),
        (3, "of type int"),
        (b"bytes", "of type bytes"),
        ({"text": "글"}, "of type dict"),
        ({"글"}, "of type set"),
        (np.float32(1), "of type float32"),
        (np.array(1), "of type ndarray"),
        (Table(), "of type Table"),
        (["글", None], "text 1 is None"),
        (["글", 2.5], "text 1 is of type float"),
        (["a\ud800"], "text 0: character 2 is half a surrogate pair .U.D800."),
        ("\udc00", "the text: character 1 is half"),
    ],
)
def test_what_no_tokenizer_takes(texts, says):
    for take in (take_texts, take_texts_or_pairs):
        with pytest.raises(MalmoiError, match=says):
            take(texts)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([("가", "나", "다")], "text 0: a pair is of two texts; this has 3"),
        ([("가",)], "this has 1"),
        (["글", ("가", None)], "text 1, the second is None"),
        ([(3, "나")], "text 0, the first of the pair is of type int"),
        (("가", "나"), "two texts or one pair"),
    ],
)
def test_pairs(texts, says):
    with pytest.raises(MalmoiError, match=says):
        take_texts_or_pairs(texts)


def test_no_pairs_where_texts_are_meant():
    with pytest.raises(MalmoiError, match="text 0 is of type tuple"):
        take_texts([("가", "나")])
