"""What the check of a corpus counts and suspects, on texts where the right answer is known."""

import json
import unicodedata
from collections import Counter
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi.text.checking import check_corpus
from malmoi.text.mojibake import common_syllables, find_mojibake
from malmoi.text.reading import Corpus, ReadOptions
from malmoi.text.repetition import SeenTexts
from malmoi.text.scripts import ScriptCounter
from malmoi.text.sentences import sentence_splitter

KOREAN = "우리는 오늘 도서관에서 오래된 사전을 읽었다. 정말 재미있는 하루였다."


@pytest.fixture
def check(tmp_path):
    def run(files: dict[str, str | bytes], **options):
        for name, content in files.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        corpus = Corpus([tmp_path / name for name in files], ReadOptions(**options))
        report = check_corpus(corpus, sentence_splitter("rules"))
        json.dumps(asdict(report))
        return report

    return run


def test_counts(check):
    report = check({"a.txt": "One two. Three!\n\n하나 둘.\n"})
    assert (report.documents, report.sentences, report.words, report.characters) == (2, 3, 5, 20)
    assert report.problems == []
    assert report.verdict == "Ready to train on: 2 documents, 5 words, and nothing suspicious."
    assert report.files[0].rule == "blank"


def test_scripts():
    samples = {
        "Latin": "aZéßŁＡ",
        "Hangul syllables": "가힣",
        "Hangul jamo": "ㄱㅏ\u1100\u1161ﾡ",
        "Han": "漢字々𠀀",
        "Kana": "あアｱ",
        "Cyrillic": "Жя",
        "Greek": "Ωα",
        "Arabic": "سلام",
        "Hebrew": "שלום",
        "Thai": "ไทย",
        "Devanagari": "नमस्ते",
        "digits": "09②٣",
        "punctuation and symbols": ".,!…「」€😀",
        "white space": " \n\u3000\xa0",
        "control": "\x01\u200b\ufeff",
        "private use": "\ue000\U000f0000",
        "other": "\u10d0\u0378",
    }
    counter = ScriptCounter()
    for text in samples.values():
        counter.add(text)
    assert counter.counts() == {script: len(text) for script, text in samples.items()}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
def test_every_character_has_one_script(texts):
    counter = ScriptCounter()
    for text in texts:
        counter.add(text)
    assert sum(counter.counts().values()) == sum(map(len, texts))


def test_scripts_of_much_text_are_counted_over_several_rounds():
    counter = ScriptCounter()
    for _ in range(30):
        counter.add("가a" * 50_000)
    assert counter.counts() == {"Latin": 1_500_000, "Hangul syllables": 1_500_000}


def test_decomposed_hangul_is_reported(check):
    report = check({"a.txt": f"{KOREAN}\n{unicodedata.normalize('NFD', KOREAN)}"}, documents="line")
    assert report.not_nfc.count == 1
    assert report.not_nfc.examples[0].place.endswith("a.txt, line 2")
    assert report.scripts["Hangul jamo"] > 20
    assert "1 document not in Unicode's composed form" in report.verdict


def test_duplicates(check):
    report = check(
        {"a.txt": "하나다. 둘이다.\n셋이다.\n하나다. 둘이다.\n넷이다. 셋이다.\n하나다. 둘이다."}, documents="line"
    )
    assert report.duplicate_documents.count == 2
    assert [example.place.split(", ")[1] for example in report.duplicate_documents.examples] == ["line 3", "line 5"]
    assert report.duplicate_sentences.count == 5
    assert report.duplicate_documents.examples[0].text == "하나다. 둘이다."
    assert "40% of the documents repeat" in report.verdict


def test_seen_texts_are_never_forgotten_and_rarely_made_up():
    seen = SeenTexts(1 << 16)
    assert not any(seen.add(f"text {number}") for number in range(1000))
    assert all(seen.add(f"text {number}") for number in range(1000))
    # A filter that is too small errs about as often as it says.
    small = SeenTexts(1 << 12)
    for number in range(8000):
        small.add(f"text {number}")
    rate = small.error_rate
    wrong = sum(small.add(f"new {number}") for number in range(500))
    assert 0.1 < rate < 0.2
    assert abs(wrong / 500 - rate) < 0.08


def test_long_lines_are_placed(check):
    report = check({"a.txt": "짧다\n" + "길" * 10_001 + "\n" + "x" * 10_000 + "\n" + "더" * 12_000})
    assert (report.long_lines.count, report.longest_line) == (2, 12_000)
    assert [example.place.split(", ")[1] for example in report.long_lines.examples] == ["line 2", "line 4"]
    assert "2 lines longer than 10,000 characters" in report.verdict


def test_sentence_lengths(check):
    report = check({"a.txt": "\n".join("X" * length for length in [*range(1, 100), 2000])})
    lengths = report.sentence_lengths
    assert (lengths.median, lengths.percentile_95, lengths.percentile_99, lengths.longest) == (50, 95, 99, 2000)
    assert lengths.mean == (99 * 50 + 2000) / 100
    assert lengths.histogram == {
        "1–10": 10,
        "11–20": 10,
        "21–50": 30,
        "51–100": 49,
        "101–200": 0,
        "201–500": 0,
        "501–1000": 0,
        "1001 or more": 1,
    }


LATIN = "UTF-8 read as Latin-1 or CP1252"
DAMAGED = [
    ("cafÃ© au lait", LATIN),
    ("itâ€™s", LATIN),
    ("naïve café".encode().decode("latin-1"), LATIN),
    ("“quoted”".encode().decode("latin-1"), LATIN),
    ("😀".encode().decode("cp1252", "ignore"), LATIN),
    (KOREAN.encode().decode("latin-1"), LATIN),
    (KOREAN.encode().decode("cp1252", "ignore"), LATIN),
    (KOREAN.encode("cp949").decode("latin-1"), "CP949 read as Latin-1"),
    ("안녕".encode("cp949").decode("latin-1"), "CP949 read as Latin-1"),
    (KOREAN.encode().decode("cp949", "ignore"), "UTF-8 read as CP949"),
    ("占쏙옙占쏙옙 그리고", "UTF-8 read as CP949"),
    ("잃어버린 \ufffd 글자", "characters already lost (U+FFFD)"),
]
SOUND = [
    KOREAN,
    "“Voilà…” dit-elle : « Où est l’été ? » Ça va, naïve, GARÇON, São Paulo, ÀÉÈ, œuvre, Ærø, Ñandú.",
    "어두워서 좋았음···· 그리고 ¨¨",
    "뷁뷁뷁 쀍 이런 말도 가끔 쓰지만 대부분은 평범한 한국어 문장으로 되어 있다.",
    "漢字とかな、中文。Ж 25 °C ± 3 × 10²",
    "재미없쪙 재미없쪙 재미없쪙",
]


@pytest.mark.parametrize(("text", "kind"), DAMAGED)
def test_mojibake_is_suspected(text, kind):
    assert kind in find_mojibake(text)


@pytest.mark.parametrize("text", SOUND)
def test_sound_text_is_not_suspected(text):
    assert find_mojibake(text) == {}


def test_mojibake_is_placed(check):
    report = check({"a.txt": f"{KOREAN}\nfine\nhow cafÃ© reads\ncafÃ©\n"}, documents="line")
    finding = report.mojibake[LATIN]
    assert finding.count == 2
    assert finding.examples[0].place.endswith("a.txt, line 3")
    assert finding.examples[0].text == "how cafÃ© reads"
    assert f"2 documents with {LATIN}" in report.verdict


def test_there_are_2350_common_syllables():
    assert len(common_syllables()) == 2350
    assert {"가", "힝"} <= common_syllables()
    assert not {"똠", "펲", "뷁"} & common_syllables()


def test_problems_are_collected_and_the_rest_is_read(check):
    report = check(
        {
            "a.jsonl": '{"text": "one"}\n{"text": 2}\n{"text": "three"}\noops\n',
            "b.txt": b"\x89PNG\r\n",
            "c.csv": "text,id\nfour,4\nfive\nsix,6\n",
            "d.txt": "seven",
        }
    )
    assert report.documents == 5
    assert [problem.rpartition("/")[2].partition(":")[0] for problem in report.problems] == [
        *("a.jsonl, line 2", "a.jsonl, line 4", "b.txt", "c.csv, line 3")
    ]
    assert "Not ready to train on" in report.verdict and "4 problems" in report.verdict
    assert [file.documents for file in report.files] == [2, 0, 2, 1]


def test_nulls_are_told(check):
    report = check({"a.jsonl": '{"text": "one"}\n{"text": null}\n{"text": ""}\n'})
    assert (report.problems, report.documents, report.empty) == ([], 1, 2)
    assert "1 null instead of a text, left out like empty ones" in report.verdict


def test_many_problems_in_a_file_are_counted(check):
    report = check({"a.jsonl": '{"text": "one"}\n' + "oops\n" * 50})
    assert len(report.problems) == 21
    assert "30 more problems" in report.problems[-1]


def test_a_corpus_without_text_is_a_problem(check):
    assert "no text" in check({"a.txt": " \n "}).problems[0]


def test_progress_is_shown_in_bytes(tmp_path):
    (tmp_path / "a.txt").write_text(("word " * 100 + "\n") * 10_000)
    corpus = Corpus([tmp_path / "a.txt"])
    shown = []
    check_corpus(corpus, sentence_splitter("lines"), shown.append)
    assert shown == sorted(shown) and len(shown) > 3
    assert shown[-1] == corpus.total_bytes


def test_real_reviews_are_hardly_suspected(data):
    corpus = Corpus([data / "nsmc" / "test.txt"], ReadOptions(format="tsv"))
    report = check_corpus(corpus, sentence_splitter("rules"))
    assert report.documents > 49_000
    assert report.scripts["Hangul syllables"] > 0.6 * report.characters
    assert sum(finding.count for finding in report.mojibake.values()) <= 5
    counts = Counter(document.text for document in corpus)
    assert report.duplicate_documents.count == sum(counts.values()) - len(counts)


def test_real_petitions_read_with_the_wrong_encoding_are_suspected(data, tmp_path):
    texts = [
        document.text[:200].replace("\n", " ") for document in Corpus([data / "petitions" / "petitions_2019-05.jsonl"])
    ]
    texts = [text for text in texts if len(text) > 50]
    for wrong, kind in (("latin-1", LATIN), ("cp949", "UTF-8 read as CP949")):
        damaged = [text.encode().decode(wrong, "ignore") for text in texts]
        assert sum(kind in find_mojibake(text) for text in damaged) > 0.97 * len(texts)
    assert sum(bool(find_mojibake(text)) for text in texts) < 0.01 * len(texts)
