"""Word vectors stand at the user's words, and hidden states are those of transformers."""

import numpy as np
import pytest
import torch
import transformers
from features.conftest import AWKWARD
from models import SENTENCES, make_model

from malmoi.blocks.scalar_mix import ScalarMix
from malmoi.errors import MalmoiError
from malmoi.features.words import assign_pieces, join_pieces
from malmoi.pretrained import create
from malmoi.systems.bert import BertConfig
from malmoi.text.tokenizer_training import train_tokenizer


@pytest.fixture(scope="module")
def small():
    return make_model()


def test_all_hidden_states_are_those_of_transformers(minilm, folder):
    theirs = transformers.AutoModel.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    texts = AWKWARD[:9]
    alone = [minilm.hidden_states([text])[0].hidden_states for text in texts]
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        padded = torch.stack(theirs(**inputs, output_hidden_states=True).hidden_states, dim=1).numpy()
    for number, states in enumerate(minilm.hidden_states(texts)):
        assert states.tokens == tokenizer.convert_ids_to_tokens(tokenizer(texts[number])["input_ids"])
        assert states.hidden_states.shape == (7, len(states.tokens), 384)
        np.testing.assert_allclose(states.hidden_states, padded[number, :, : len(states.tokens)], atol=1e-4)
        np.testing.assert_allclose(states.hidden_states, alone[number], atol=1e-5)


def test_attentions_sum_to_one(small):
    [states] = small.hidden_states(SENTENCES[:1], attentions=True)
    count = len(states.tokens)
    assert states.attentions.shape == (2, 4, count, count)
    np.testing.assert_allclose(states.attentions.sum(axis=-1), 1, atol=1e-5)
    assert small.hidden_states(SENTENCES[:1])[0].attentions is None


def test_context_tells_pythons_apart_more_with_depth(minilm):
    texts = [
        "He got bit by Python",
        "Python is my favorite programming language",
        "I wrote the program in Python yesterday",
    ]

    def vector(text, layer):
        [found] = minilm.words([text], layers=layer)
        return found.vectors[[word.lower() for word in found.words].index("python")]

    def cosine(first, second, layer):
        a, b = vector(texts[first], layer), vector(texts[second], layer)
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    snake = [cosine(0, 1, layer) for layer in range(7)]
    np.testing.assert_allclose(snake, [0.951, 0.931, 0.933, 0.917, 0.903, 0.912, 0.870], atol=2e-3)
    gaps = [cosine(1, 2, layer) - snake[layer] for layer in (0, 6)]
    assert gaps[1] > gaps[0] + 0.02


@pytest.mark.parametrize("pieces", ["first", "mean", "last", "max"])
def test_pieces_become_words_in_korean(small, pieces):
    texts = ["학생들이  어제 도서관에서\t책을 읽었습니다.", " 말모이를 모았습니다. "]
    found = small.words(texts, layers="last", pieces=pieces)
    for text, one, states in zip(texts, found, small.hidden_states(texts), strict=True):
        assert one.words == text.split()
        assert [text[begin:end] for begin, end in one.offsets] == one.words
        for (begin, end), vector in zip(one.offsets, one.vectors, strict=True):
            rows = [
                row
                for row, (first, last) in zip(states.hidden_states[-1], states.offsets, strict=True)
                if last > first and begin <= first and last <= end
            ]
            expected = {"first": rows[0], "last": rows[-1], "mean": np.mean(rows, 0), "max": np.max(rows, 0)}[pieces]
            np.testing.assert_allclose(vector, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_any_tokenizer_is_aligned(kind):
    texts = ["말모이를 모았습니다 그리고 dictionary 사전을 읽었다.", "밥을 먹었다"]
    tokenizer = train_tokenizer(texts * 20, kind=kind, vocab_size=400)
    model = create(
        BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16), tokenizer
    )
    for one, text in zip(model.words(texts, layers=0), texts, strict=True):
        assert one.words == text.split() and np.abs(one.vectors).sum(axis=1).min() > 0
        # Without context, a word that stands elsewhere differs only by its position, and two words in one place do not
        # share a vector.
        assert len({vector.tobytes() for vector in one.vectors}) == len(one.words)


def test_words_of_the_user(small):
    words = ["학생들이", "어제", "도서관에서 책을", "읽었습니다", "."]
    [joined] = small.words([words], layers="last")
    assert joined.words == words and joined.vectors.shape == (5, 32)
    text = "학생들이 어제  도서관에서 책을 읽었습니다."
    [placed] = small.words([text], words=[words], layers="last")
    assert placed.words == words and placed.offsets[-1] == (len(text) - 1, len(text))
    [whole] = small.words([text], layers="last")
    np.testing.assert_allclose(placed.vectors[0], whole.vectors[0], atol=1e-6)


@pytest.mark.parametrize(
    ("texts", "words", "says"),
    [
        (["밥을 먹었다"], [["밥을", "먹는다"]], "text 0: its word 1 is '먹는다', but the text goes on with '먹었다'"),
        (["밥을 먹었다"], [["밥을"]], "'먹었다' is left over"),
        (["밥을 먹었다"], [["먹었다"]], "goes on with '밥을"),
        (["밥을 먹었다"], [["밥을", ""]], "word 1 is ''"),
        (["밥을 먹었다"], [], "0 lists of words were given for 1 texts"),
        ([["밥을", " "]], None, "text 0: word 1 is ' '"),
        ([["밥을", 3]], None, "word 1 is of type int"),
        (["밥\ud800"], None, "half a surrogate"),
    ],
)
def test_words_that_do_not_fit_their_text(small, texts, words, says):
    with pytest.raises(MalmoiError, match=says):
        small.words(texts, words=words, layers="last")


@pytest.mark.filterwarnings("ignore:.*texts have more than")
def test_long_texts_keep_or_lose_words(small):
    text = "학생들이 어제 도서관에서 책을 읽었습니다. " * 12
    with pytest.raises(MalmoiError, match="truncate right"):
        small.words([text], layers="last")
    [all_words] = small.words([text], layers="last", truncate="window")
    [fewer] = small.words([text], layers="last", truncate="right")
    assert all_words.words == text.split()
    assert fewer.words == text.split()[: len(fewer.words)] and 5 < len(fewer.words) < len(all_words.words)
    np.testing.assert_allclose(fewer.vectors, all_words.vectors[: len(fewer.words)], atol=1e-5)


def test_concat_of_several_layers(small):
    [both] = small.words(SENTENCES[:1], layers="last2")
    [lower] = small.words(SENTENCES[:1], layers=1)
    [upper] = small.words(SENTENCES[:1], layers=2)
    np.testing.assert_allclose(both.vectors, np.concatenate([lower.vectors, upper.vectors], axis=1), atol=1e-6)


def test_special_tokens_in_the_text_are_words(small):
    """Even where they stand first or last, they are not taken for the frame."""
    text = "[CLS] 책을 [SEP]"
    [found] = small.words([text], layers="last")
    [states] = small.hidden_states([text])
    assert found.words == ["[CLS]", "책을", "[SEP]"]
    np.testing.assert_allclose(found.vectors[[0, 2]], states.hidden_states[-1][[1, -2]], atol=1e-6)
    [nothing] = small.words([""], layers="last")
    assert nothing.words == [] and nothing.vectors.shape == (0, 32)


def test_a_word_without_pieces_is_zero():
    spans, offsets = [(0, 2), (3, 4), (5, 7)], [(0, 1), (1, 2), (5, 7)]
    owners = assign_pieces(spans, offsets)
    assert owners.tolist() == [0, 0, 2]
    pieces = np.array([[1.0, -2.0], [3.0, -4.0], [5.0, 6.0]], dtype=np.float32)
    for how, first in (("first", [1, -2]), ("last", [3, -4]), ("mean", [2, -3]), ("max", [3, -2])):
        np.testing.assert_array_equal(join_pieces(pieces, owners, 3, how), [first, [0, 0], [5, 6]])


def test_the_scalar_mix(small):
    mix = ScalarMix(2)
    layers = [torch.randn(3, 5), torch.randn(3, 5)]
    torch.testing.assert_close(mix(layers), (layers[0] + layers[1]) / 2)
    assert mix.shares() == [0.5, 0.5]
    target = layers[1] * 2
    optimizer = torch.optim.Adam(mix.parameters(), lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        (mix(layers) - target).square().sum().backward()
        optimizer.step()
    assert sum(mix.shares()) == pytest.approx(1) and mix.shares()[1] > 0.95
    assert mix.gamma.item() == pytest.approx(2, abs=0.15)
    torch.testing.assert_close(mix(layers), sum(w * h for w, h in zip(mix.weights(), layers, strict=True)))
    # What was learned serves as it is.
    states = small.hidden_states(SENTENCES[:1])[0].hidden_states
    mixed = mix([torch.from_numpy(states[1]), torch.from_numpy(states[2])]).detach().numpy().mean(axis=0)
    np.testing.assert_allclose(small.embed(SENTENCES[:1], layers="all", combine=mix.weights())[0], mixed, atol=1e-5)


def test_an_engine_needs_no_torch():
    import subprocess
    import sys

    program = (
        "import sys, malmoi.features.embedder, malmoi.features.embedding, malmoi.cli.embed;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
