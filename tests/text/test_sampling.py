"""A sample: everything of a small text, an even part of a large one, always the same."""

from itertools import pairwise

from malmoi.text.sampling import Sample


class Texts:
    """Texts that know how much of them has been read."""

    def __init__(self, texts):
        self.texts, self.total, self.read = texts, sum(map(len, texts)), 0

    def __iter__(self):
        self.read = 0
        for text in self.texts:
            self.read += len(text)
            yield text

    def share(self):
        return self.read / self.total


def test_a_small_text_is_taken_whole():
    texts = Texts(["word " * 10_000, "", "a b", "x" * 40_000])
    sample = Sample(texts, 1_000_000, texts.share)
    assert "".join(sample) == "".join(texts) and sample.taken == sample.seen == texts.total


def test_a_large_text_is_taken_evenly_and_again_the_same():
    texts = Texts([f"{number:05d} " * 100 for number in range(1000)])
    sample = Sample(texts, 60_000, texts.share)
    taken = list(sample)
    assert 59_000 < sample.taken < 61_000 and sample.seen == 600_000
    numbers = [int(text[:5]) for text in taken]
    assert all(8 <= later - before <= 12 for before, later in pairwise(numbers))
    assert list(sample) == taken


def test_a_long_text_is_cut_between_words():
    texts = Texts([" ".join(f"word{number}" for number in range(100_000))])
    sample = Sample(texts, 50_000, texts.share)
    words = set("".join(sample).split())
    assert 50_000 <= sample.taken < 70_000
    assert words <= set(texts.texts[0].split())
