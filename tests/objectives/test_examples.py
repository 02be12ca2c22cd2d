import hashlib
import subprocess
import sys
from random import Random

import numpy as np
import pytest

from malmoi.data.order import find_places, shuffle_epoch
from malmoi.data.store import Store
from malmoi.errors import MalmoiError
from malmoi.objectives.examples import Examples
from malmoi.objectives.options import ExampleOptions
from malmoi.objectives.pairs import walk_documents
from malmoi.objectives.statistics import doubt_share, measure_examples
from malmoi.values import IGNORED

ALL_OPTIONS = [
    ExampleOptions(seq_len=64),
    ExampleOptions(seq_len=64, whole_words=True),
    ExampleOptions(seq_len=64, duplicates=3),
    ExampleOptions(seq_len=64, objective="mlm"),
    ExampleOptions(seq_len=64, objective="mlm", whole_words=True, duplicates=2),
]

GOLDEN = {
    "mlm False": "51f02c9900cf4808",
    "mlm True": "d43f71b9c77fbcc2",
    "mlm+nsp False": "9bf2044bb5651cd9",
    "mlm+nsp True": "b1b83e5a853bfa04",
}


def same(first, second):
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("input_ids", "token_type_ids", "labels", "attention_mask", "next_sentence_label")
    )


def rows_of(batch):
    """The rows of a batch without their padding, to compare batches of different widths."""
    for row in range(len(batch.input_ids)):
        length = batch.input_ids.shape[1] if batch.attention_mask is None else batch.attention_mask[row].sum()
        yield batch.input_ids[row, :length].tolist(), batch.labels[row, :length].tolist()


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_a_batch_is_a_pure_function_of_its_step(english_store, options):
    walked = Examples(english_store, options)
    for step in range(30):
        batch = walked.batch(step, 16)
    # The last one, asked of examples that have never built another, and of a store opened anew.
    direct = Examples(Store(english_store.folder), options).batch(29, 16)
    assert same(batch, direct)
    far = 1_000_000
    assert same(walked.batch(far, 16), Examples(english_store, options).batch(far, 16))


def test_a_batch_is_the_same_in_another_process(english_store):
    program = (
        "import sys, hashlib; from malmoi.data.store import Store; from malmoi.objectives.examples import Examples;"
        "from malmoi.objectives.options import ExampleOptions;"
        "b = Examples(Store(sys.argv[1]), ExampleOptions(seed=5)).batch(321, 8);"
        "print(hashlib.sha256(b.input_ids.tobytes() + b.labels.tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, english_store.folder], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    batch = Examples(english_store, ExampleOptions(seed=5)).batch(321, 8)
    assert digests == {hashlib.sha256(batch.input_ids.tobytes() + batch.labels.tobytes()).hexdigest() + "\n"}


def test_later_epochs_show_their_walk_whole(english_store):
    """Walks have different numbers of pairs; an epoch must not favour the pairs that are made first."""
    options = ExampleOptions(seq_len=64)
    examples = Examples(english_store, options)
    size = examples.epoch_size
    for epoch in range(1, 6):
        walk = walk_documents(english_store, 0, epoch, max_tokens=61, short_share=0.1)
        _, places = find_places(0, size, size, np.arange(size))
        shown = np.unique(shuffle_epoch(0, epoch, places % len(walk), len(walk)))
        assert len(shown) == min(size, len(walk))
        batch = examples.batch(epoch, size)
        random = batch.next_sentence_label.mean()
        assert abs(random - walk.is_random[shown].mean()) < abs(size - len(walk)) / size + 1e-9
        # No part of the walk is left out more than another.
        if len(walk) > size:
            missing = np.setdiff1d(np.arange(len(walk)), shown)
            assert 0.3 < missing.mean() / len(walk) < 0.7


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_ranks_share_the_batch_that_one_process_would_build(english_store, options):
    examples = Examples(english_store, options)
    whole = list(rows_of(examples.batch(7, 32)))
    for ranks in (2, 8):
        parts = [
            row
            for rank in range(ranks)
            for row in rows_of(examples.batch(7, 32, np.arange(rank * 32 // ranks, (rank + 1) * 32 // ranks)))
        ]
        assert parts == whole


def test_masks_are_new_at_every_visit_unless_duplicates_are_asked_for(make_store):
    store = make_store(["A first sentence. A second one follows. Then a third. And there is a fourth."], vocab_size=80)

    def masks(duplicates):
        options = ExampleOptions(objective="mlm", seq_len=64, duplicates=duplicates)
        examples = Examples(store, options)
        assert examples.epoch_size == 1
        return {tuple(examples.batch(step, 1).labels[0]) for step in range(60)}

    assert len(masks(None)) > 20
    assert len(masks(1)) == 1
    assert len(masks(3)) == 3


@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_sequences_have_bert_s_form(korean_store, options):
    tokenizer = korean_store.tokenizer
    examples = Examples(korean_store, options)
    for step in range(20):
        batch = examples.batch(step, 16)
        original = np.where(batch.labels == IGNORED, batch.input_ids, batch.labels)
        for row in range(16):
            length = batch.input_ids.shape[1] if batch.attention_mask is None else batch.attention_mask[row].sum()
            ids, types = original[row], batch.token_type_ids[row]
            assert length <= options.seq_len
            assert ids[0] == tokenizer.cls_id and ids[length - 1] == tokenizer.sep_id
            assert (ids[length:] == tokenizer.pad_id).all() and (types[length:] == 0).all()
            assert (batch.labels[row, length:] == IGNORED).all()
            assert (batch.labels[row, :length][ids[:length] == tokenizer.sep_id] == IGNORED).all()
            if options.objective == "mlm+nsp":
                first, last = np.flatnonzero(ids[:length] == tokenizer.sep_id)
                assert types[:length].tolist() == [0] * (first + 1) + [1] * (last - first)
            else:
                assert not types.any() and length == options.seq_len


def test_packed_text_is_the_store_in_order_with_separators_between_documents(korean_store):
    options = ExampleOptions(objective="mlm", seq_len=32)
    examples = Examples(korean_store, options)
    stream = []
    for document in range(len(korean_store.documents) - 1):
        begin, end = korean_store.sentences[korean_store.documents[[document, document + 1]]]
        stream += [*korean_store.tokens[begin:end].tolist(), korean_store.tokenizer.sep_id]
    batch = examples.batch(0, examples.epoch_size)
    original = np.where(batch.labels == IGNORED, batch.input_ids, batch.labels)[:, 1:-1]
    ring = "," + ",".join(map(str, stream + stream)) + ","
    for row in original:
        assert "," + ",".join(map(str, row)) + "," in ring
    # Sequences do not overlap: together they are the ring but for less than one sequence.
    counts = np.bincount(original.ravel(), minlength=korean_store.manifest.vocab_size)
    missing = np.bincount(stream, minlength=korean_store.manifest.vocab_size) - counts
    assert missing.min() >= 0 and missing.sum() < 30


def test_a_store_smaller_than_a_sequence_makes_one_short_sequence(make_store):
    store = make_store(["Tiny text. Very tiny."], vocab_size=60)
    batch = Examples(store, ExampleOptions(objective="mlm", seq_len=128)).batch(0, 2)
    assert batch.input_ids.shape[1] == store.manifest.tokens + 1 + 2


@pytest.mark.parametrize("name", ["english", "korean", "wikitext", "petitions"])
@pytest.mark.parametrize("whole_words", [False, True])
def test_statistics_of_ten_thousand_examples(request, name, whole_words, real_store):
    store = request.getfixturevalue(f"{name}_store") if name in ("english", "korean") else real_store(name)
    examples = Examples(store, ExampleOptions(whole_words=whole_words, seed=1))
    statistics = measure_examples(examples, 10_000, 64)
    assert statistics.examples >= 10_000
    assert abs(statistics.selected - 0.15) < 0.003
    assert abs(statistics.masked - 0.8) < 0.01
    assert abs(statistics.random - 0.1) < 0.01
    assert abs(statistics.kept - 0.1) < 0.01
    assert 0.5 < statistics.random_next < 0.6
    assert statistics.selected_at_specials == 0


def digest(examples):
    made = [examples.batch(step, 16) for step in (0, 1000)]
    return hashlib.sha256(b"".join(one.input_ids.tobytes() + one.labels.tobytes() for one in made)).hexdigest()[:16]


def test_what_a_seed_means_never_changes(make_store):
    """The numbers are those of the first version that had whole words."""
    words = [f"{first}{second}" for first in ("ba", "ko", "li", "mu") for second in ("n", "rat", "so", "tep")]
    random = Random(0)
    documents = ["\n".join(" ".join(random.choices(words, k=7)) for _ in range(20)) for _ in range(30)]
    store = make_store(documents, vocab_size=40, sentences="lines")
    assert {
        f"{objective} {whole_words}": digest(
            Examples(store, ExampleOptions(objective=objective, whole_words=whole_words, seq_len=64))
        )
        for objective in ("mlm+nsp", "mlm")
        for whole_words in (False, True)
    } == GOLDEN


def clauses(count=60):
    """Text of long clauses without a space in them, as in Thai."""
    random = Random(0)
    return ["ก" + "".join(random.choice("กขคงจชซญดต") for _ in range(3000)) for _ in range(count)]


def test_text_without_spaces_is_predicted_all_the_same(make_store):
    store = make_store(clauses(), kind="unigram", vocab_size=100)
    examples = Examples(store, ExampleOptions(whole_words=True, objective="mlm"))
    statistics = measure_examples(examples, 200, 32)
    assert statistics.without_predictions == 0 and abs(statistics.selected - 0.15) < 0.005
    assert doubt_share(statistics, examples.options) is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"whole_words": True}, "leave out --whole-words"),
        ({"max_predictions": 3}, "--max-predictions 3 allows no more"),
    ],
)
def test_a_share_that_is_off_is_said(make_store, options, says):
    # Of words with 10 to 19 pieces one is to be predicted in a sequence: never a second.
    random = Random(0)
    words = ["".join(random.choices("abcdefghij", k=22)) for _ in range(3000)]
    store = make_store([" ".join(words)], kind="unigram", vocab_size=60)
    examples = Examples(store, ExampleOptions(objective="mlm", **options))
    statistics = measure_examples(examples, 64, 32)
    sentence = doubt_share(statistics, examples.options)
    assert sentence is not None and says in sentence and f"{statistics.selected:.1%}" in sentence, statistics
    assert doubt_share(measure_examples(Examples(store, ExampleOptions()), 64, 32), ExampleOptions()) is None


@pytest.mark.parametrize("options", [{}, {"objective": "mlm"}])
def test_whole_words_are_always_whole(english_store, options):
    """Checked without the store's word bits: a piece that begins with ## shares the fate of the one before it."""
    continues = np.array([english_store.tokenizer.token(id).startswith("##") for id in range(2000)])
    examples = Examples(english_store, ExampleOptions(whole_words=True, **options))
    pairs_seen = 0
    for step in range(40):
        batch = examples.batch(step, 32)
        chosen = batch.labels != IGNORED
        original = np.where(chosen, batch.labels, batch.input_ids)
        # A sequence or segment may be cut off in the middle of a word: then what is there is all there is.
        opens = np.isin(original, [english_store.tokenizer.cls_id, english_store.tokenizer.sep_id])
        inner = continues[original[:, 1:]] & ~opens[:, :-1]
        assert (chosen[:, 1:][inner] == chosen[:, :-1][inner]).all()
        pairs_seen += int(inner.sum())
    assert pairs_seen > 10_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seq_len": 4}, "--seq-len 4"),
        ({"mask_share": 1.5}, "--mask-share 1.5"),
        ({"short_share": -1}, "--short-share -1"),
        ({"max_predictions": 0}, "--max-predictions 0"),
        ({"duplicates": 0}, "--duplicates 0"),
        ({"seed": -1}, "--seed -1"),
        ({"seq_len": 10**20}, "--seq-len 1"),
        ({"max_predictions": 10**20}, "--max-predictions 1"),
        ({"duplicates": 10**20}, "--duplicates 1"),
    ],
)
def test_impossible_options_are_refused(options, says):
    with pytest.raises(MalmoiError, match=says):
        ExampleOptions(**options)
