"""Sentence vectors are those of sentence-transformers, in any batch, and every option does what it says."""

import json

import numpy as np
import pytest
import torch
from features.conftest import AWKWARD
from models import SENTENCES, make_model

import malmoi
from malmoi.errors import MalmoiError


@pytest.fixture(scope="module")
def small():
    return make_model()


@pytest.mark.filterwarnings("ignore:.*texts have more than")
def test_awkward_texts_as_sentence_transformers(minilm, reference):
    ours = minilm.embed(AWKWARD, truncate="right")
    assert ours.shape == (len(AWKWARD), 384) and ours.dtype == np.float32
    np.testing.assert_allclose(ours, reference.encode(AWKWARD), atol=1e-5)
    np.testing.assert_array_equal(ours[0], ours[1])  # nothing and only white space are both [CLS] [SEP]


@pytest.mark.filterwarnings("ignore:.*texts have more than")
def test_a_batch_equals_one_by_one(minilm):
    together = minilm.embed(AWKWARD, truncate="right")
    alone = np.concatenate([minilm.embed([text], truncate="right") for text in AWKWARD])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    tight = minilm.embed(AWKWARD, truncate="right", batch_tokens=1)
    np.testing.assert_allclose(together, tight, atol=1e-5)


def test_the_order_is_the_users(small):
    texts = [f"{'책을 ' * (number % 7)}{number}" for number in range(200)]
    vectors = small.embed(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    np.testing.assert_allclose(small.embed([texts[place] for place in order]), vectors[order], atol=1e-5)


def test_values_known_beforehand(minilm):
    [states] = minilm.hidden_states(["He got bit by Python"])
    np.testing.assert_allclose(states.hidden_states[-1, 0, :4], [0.10166, 0.38210, -0.07838, 0.04518], atol=2e-5)
    pooler = minilm.embed(["He got bit by Python"], pool="pooler", normalize=False)
    np.testing.assert_allclose(pooler[0, :3], [-0.04419, 0.12678, 0.01892], atol=2e-5)


@pytest.mark.parametrize("pool", ["cls", "max", "mean", "mean-sqrt-len", "weighted-mean"])
def test_each_pooling_is_theirs(small, pool):
    """A loop over ragged lists says the same."""
    vectors = small.embed(SENTENCES, pool=pool)
    for vector, states in zip(vectors, small.hidden_states(SENTENCES), strict=True):
        rows = states.hidden_states[-1].tolist()
        numbers = range(1, len(rows) + 1)
        sums = [sum(column) for column in zip(*rows, strict=True)]
        weighted = [sum(n * x for n, x in zip(numbers, column, strict=True)) for column in zip(*rows, strict=True)]
        expected = {
            "cls": rows[0],
            "max": [max(column) for column in zip(*rows, strict=True)],
            "mean": [x / len(rows) for x in sums],
            "mean-sqrt-len": [x / len(rows) ** 0.5 for x in sums],
            "weighted-mean": [x / sum(numbers) for x in weighted],
        }[pool]
        np.testing.assert_allclose(vector, expected, atol=1e-5)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("pool", ["cls", "max", "mean", "mean-sqrt-len", "weighted-mean"])
def test_a_saved_embedder_is_one_for_sentence_transformers(pool, normalize, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from malmoi.checkpoint.sentence_modules import SentenceModules

    model = make_model()
    model.sentence = SentenceModules(pool, normalize, max_seq_length=20)
    model.save(tmp_path / "model")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    again = malmoi.load(tmp_path / "model")
    assert again.sentence == model.sentence and theirs.max_seq_length == 20
    texts = [*SENTENCES, ""]
    np.testing.assert_allclose(again.embed(texts), theirs.encode(texts), atol=1e-5)
    # What they write is read as well.
    theirs.save(str(tmp_path / "theirs"))
    assert malmoi.load(tmp_path / "theirs").sentence == model.sentence
    model.save(tmp_path / "model")  # and an embedder in the same place is replaced


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("modules.json", [{"type": "m.Transformer", "path": ""}, {"type": "m.Dense", "path": "2_Dense"}], "Dense"),
        ("modules.json", [{"type": "m.Transformer", "path": ""}], "order"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "lasttoken"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "cls, mean"),
        ("1_Pooling/config.json", {"pooling_mode_lasttoken": True}, "lasttoken"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
        ("config_sentence_transformers.json", {"default_prompt_name": "q", "prompts": {"q": "query: "}}, "prompt"),
    ],
)
def test_what_is_not_computed_is_said(name, content, says, tmp_path):
    from malmoi.checkpoint.sentence_modules import SentenceModules

    model = make_model()
    model.sentence = SentenceModules()
    model.save(tmp_path / "model")
    (tmp_path / "model" / name).write_text(json.dumps(content))
    loaded = malmoi.load(tmp_path / "model")
    assert any(says in note for note in loaded.notes)
    with pytest.raises(MalmoiError, match=says):
        loaded.embed(["글"])
    assert loaded.embed(["글"], pool="mean").shape == (1, 32)


@pytest.mark.parametrize("content", ["{}", "[1]", "nonsense", '[{"type": "m.Transformer"}]'])
def test_a_damaged_list_of_modules(content, tmp_path):
    model = make_model()
    model.save(tmp_path / "model")
    (tmp_path / "model" / "modules.json").write_text(content)
    loading = pytest.raises(MalmoiError, match=r"modules\.json")
    if content == "{}":
        assert "order" in malmoi.load(tmp_path / "model").notes[-1]
        return
    with loading:
        malmoi.load(tmp_path / "model")


def test_layers_and_their_combination(small):
    states = [one.hidden_states for one in small.hidden_states(SENTENCES)]

    def means(layer):
        return np.stack([one[layer].mean(axis=0) for one in states])

    def check(expected, **options):
        np.testing.assert_allclose(small.embed(SENTENCES, **options), expected, atol=1e-5)

    check(means(2), layers="last")
    check(means(1), layers="second-to-last")
    check(means(0), layers=0)
    check(means(1), layers=-2)
    check(means(1), layers="h_1")
    check(np.concatenate([means(1), means(2)], axis=1), layers="all")
    check(np.concatenate([means(1), means(2)], axis=1), layers="last2")
    check(np.concatenate([means(0), means(2)], axis=1), layers=[2, 0])  # the lowest first
    check(means(1) + means(2), layers="1,2", combine="sum")
    check((means(1) + means(2)) / 2, layers="all", combine="mean")
    check(0.3 * means(1) + 0.9 * means(2), layers="all", combine=[0.3, 0.9])
    largest = np.stack([(one[1] + one[2]).max(axis=0) for one in states])
    check(largest, layers="all", combine="sum", pool="max")


def test_normalised_and_shortened(small):
    plain = small.embed(SENTENCES)
    unit = small.embed(SENTENCES, normalize=True)
    np.testing.assert_allclose(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)
    short = small.embed(SENTENCES, normalize=True, dimensions=5)
    assert short.shape == (3, 5)
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(small.embed(SENTENCES, dimensions=5), plain[:, :5], atol=1e-6)


def test_long_texts_are_never_cut_in_silence(small):
    text = "학생들이 어제 도서관에서 책을 읽었습니다. " * 20
    ids = small.tokenizer.encode(text).ids
    assert len(ids) > 2 * 48
    with pytest.raises(MalmoiError, match=rf"text 1 has {len(ids)} tokens, but the model takes 48"):
        small.embed(["글", text])
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        cut = small.embed(["글", text], truncate="right")
    with pytest.warns(UserWarning, match="1 of 2 texts"):
        windows = small.embed(["글", text], truncate="window")
    np.testing.assert_allclose(cut[0], windows[0], atol=1e-6)
    cls, *content, sep = ids
    parts = [content[begin : begin + 46] for begin in range(0, len(content), 46)]
    with torch.inference_mode():
        means = [
            small.model(input_ids=torch.tensor([[cls, *part, sep]])).last_hidden_state[0].mean(dim=0).numpy()
            for part in parts
        ]
    np.testing.assert_allclose(cut[1], means[0], atol=1e-5)
    expected = np.average(means, axis=0, weights=[len(part) for part in parts])
    np.testing.assert_allclose(windows[1], expected, atol=1e-5)


def test_dropout_never_acts_and_the_mode_stays(small):
    expected = small.embed(SENTENCES)
    small.model.train()
    try:
        np.testing.assert_array_equal(small.embed(SENTENCES), expected)
        assert small.model.training
    finally:
        small.model.eval()
    assert all(parameter.grad is None for parameter in small.model.parameters())


def test_nothing_more_is_computed_than_is_asked_for(small):
    ran = []
    hooks = [
        module.register_forward_hook(lambda *_, name=name: ran.append(name))
        for name, module in small.model.named_modules()
        if name in ("layers.0", "layers.1", "pooler")
    ]
    try:
        small.embed(["글"], layers=0)
        assert ran == []
        small.embed(["글"], layers=1)
        assert ran == ["layers.0"]
        ran.clear()
        small.embed(["글"], pool="pooler")
        assert ran == ["layers.0", "layers.1", "pooler"]
    finally:
        for hook in hooks:
            hook.remove()


def read_pairs(data, name):
    if name == "sts-b":
        rows = [line.split("\t") for line in (data / "sts-b" / "dev.tsv").read_text("utf-8").splitlines()[1:]]
        return [(row[7], row[8], float(row[9])) for row in rows]
    if name == "KorSTS":
        lines = (data / "kor-nlu" / "KorSTS" / "sts-dev.tsv").read_text("utf-8").splitlines()[1:]
        rows = [line.split("\t") for line in lines]
        return [(row[5], row[6], float(row[4])) for row in rows]
    records = json.loads((data / "klue" / "klue-sts-v1.1_dev.json").read_text("utf-8"))
    return [(one["sentence1"], one["sentence2"], one["labels"]["real-label"]) for one in records]


@pytest.mark.parametrize("name", ["sts-b", "KorSTS", "KLUE-STS"])
def test_judges_real_pairs_like_sentence_transformers(minilm, reference, data, name):
    stats = pytest.importorskip("scipy.stats")
    first, second, gold = zip(*read_pairs(data, name)[:150], strict=True)

    def correlate(vectors):
        cosines = (vectors[: len(gold)] * vectors[len(gold) :]).sum(axis=1)
        return stats.spearmanr(cosines, gold).statistic

    ours, theirs = minilm.embed([*first, *second]), reference.encode([*first, *second])
    assert correlate(ours) == pytest.approx(correlate(theirs), abs=5e-5)
    assert name != "sts-b" or correlate(ours) > 0.7


BAD = [
    ({"texts": 3}, "a list of texts is needed, but this is of type int"),
    ({"texts": ["글", 3]}, "text 1 is of type int"),
    ({"texts": ["글", None]}, "text 1 is None"),
    ({"texts": ["글", "a\ud800"]}, "text 1: character 2 is half a surrogate pair"),
    ({"layers": 3}, "there is no layer 3; the model has h_0 .* to h_2"),
    ({"layers": -4}, "there is no layer -4"),
    ({"layers": "last4"}, "at most last2"),
    ({"layers": "lest"}, "choose last"),
    ({"layers": [1, -2]}, "named twice"),
    ({"layers": []}, "choose last"),
    ({"combine": "multiply"}, "choose concat"),
    ({"combine": [0.5, 0.5]}, "2 weights were given for 1 layers"),
    ({"pool": "men"}, "did you mean mean"),
    ({"pool": "pooler", "layers": 1}, "last layer"),
    ({"dimensions": 33}, "the vectors have 32"),
    ({"dimensions": 0}, "choose 1 to 32"),
    ({"truncate": "left"}, "choose one of error"),
    ({"batch_tokens": 0}, "at least 1"),
]


@pytest.mark.parametrize(("options", "says"), BAD)
def test_bad_input_is_a_sentence(small, options, says):
    texts = options.pop("texts", ["글"]) if "texts" in options else ["글"]
    with pytest.raises(MalmoiError, match=says) as caught:
        small.embed(texts, **options)
    assert "\n" not in str(caught.value)


def test_a_pooler_that_is_not_there(tmp_path):
    model = make_model()
    model.absent = frozenset({"pooler"})
    with pytest.raises(MalmoiError, match="no pooler"):
        model.embed(["글"], pool="pooler")


def test_a_text_of_ten_megabytes(small):
    with pytest.raises(MalmoiError, match=r"text 0 has [0-9,]+ tokens"):
        small.embed(["책을 읽었습니다. " * 420_000])


def test_no_texts_are_no_vectors(small):
    assert small.embed([]).shape == (0, 32)
    assert small.words([], layers="last") == [] and small.hidden_states([]) == []


def test_a_text_alone_and_a_generator(small):
    vectors = small.embed(text for text in ("글", "책을 읽었습니다."))
    assert vectors.shape == (2, 32)
    np.testing.assert_allclose(small.embed("글"), vectors[0], atol=1e-6)
    alone, [first] = small.words("책을 읽었다", layers="last"), small.words(["책을 읽었다"], layers="last")
    assert alone.words == first.words == ["책을", "읽었다"]
    assert small.words("책을", words=["책", "을"], layers="last").words == ["책", "을"]
    assert small.hidden_states("글").tokens == small.hidden_states(["글"])[0].tokens
