"""The report's figures, against ones counted by hand."""

import unicodedata

import pytest

from malmoi.text import tokenizer_report
from malmoi.text.tokenizer import load_tokenizer
from malmoi.text.tokenizer_report import report_tokenizer
from malmoi.text.tokenizer_training import train_tokenizer

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "가", "##나", "가나", "A", "##bc", "갂", "[unused1]"]


@pytest.fixture
def tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES), "utf-8")
    return load_tokenizer(path)


def test_figures_counted_by_hand(tokenizer):
    report = report_tokenizer(tokenizer, ["가나 가가 Abc 가", "다나가"])
    # 가나 | [UNK] | A ##bc | 가 | [UNK]
    assert (report.words, report.tokens) == (5, 6)
    assert report.tokens_per_word == 6 / 5
    assert report.characters_per_token == 11 / 6
    assert report.single_piece_word_share == 2 / 5
    assert report.unknown_token_share == 2 / 6
    assert report.unknown_word_share == 2 / 5
    assert report.hangul_syllables == 8
    assert report.hangul_coverage == pytest.approx(3 / 8)
    assert (report.hangul_pieces, report.ksx1001_pieces) == (2, 1)  # 갂 is not among the 2,350
    assert report.longest_pieces[0] == "bc"
    assert "[unused1]" not in report.longest_pieces
    assert report.special_tokens == dict(enumerate(PIECES[:5]))
    assert report.sample_is_whole_text
    assert not any("the first" in line for line in report.lines())


def test_decomposed_hangul_counts_as_hangul(tokenizer):
    assert report_tokenizer(tokenizer, [unicodedata.normalize("NFD", "가나")]).hangul_coverage == 1


def test_a_text_without_hangul_has_no_coverage(tokenizer):
    report = report_tokenizer(tokenizer, ["Abc"])
    assert report.hangul_coverage is None
    assert not any("Hangul known" in line for line in report.lines())


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_every_kind_counts_words_and_syllables_alike(kind):
    texts = ["가나 다라 가나 다라  가나\n"] * 20
    report = report_tokenizer(train_tokenizer(texts, kind=kind, vocab_size=400), texts)
    assert report.words == 100
    assert report.unknown_word_share == 0
    assert report.hangul_coverage == 1
    if kind == "bpe":  # whose pieces hold the space before the word
        assert report.single_piece_word_share == 1


def test_only_a_sample_is_read_and_the_report_says_so(tokenizer, monkeypatch):
    monkeypatch.setattr(tokenizer_report, "SAMPLE_BYTES", 100)
    read = 0

    def texts():
        nonlocal read
        for _ in range(1000):
            read += 1
            yield "가나 Abc"

    report = report_tokenizer(tokenizer, texts())
    assert report.sample_bytes == 100
    assert not report.sample_is_whole_text
    assert read < 20
    assert any("the first" in line for line in report.lines())
