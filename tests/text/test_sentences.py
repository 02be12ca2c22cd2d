"""Sentences: tricky cases with their exact outcome, and that no text is ever lost."""

import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi import MalmoiError
from malmoi.text.reading import Corpus, ReadOptions
from malmoi.text.sentences import cut_document, sentence_splitter

# Each case is a document; " | " marks where it should be cut.
CASES = [
    # English
    "The sun rose. | Nobody noticed! | Why would they? | It rose every day.",
    "Mr. Smith met Dr. Brown and Mrs. Jones at St. James Park. | They talked.",
    "The novel by J. R. R. Tolkien sold well. | So did others.",
    "He moved to the U.S. Army base in May. | It was cold.",
    "She lives in the U.S. | The weather there is fine.",
    "Fruits, e.g. apples, i.e. Malus domestica, are cheap. | Buy some.",
    "It costs 3.14 dollars, or 2.50 on sale. | Hurry.",
    "See Fig. 3 and No. 5 on pp. 12 of Vol. 2. | Then go on.",
    "He said no. | Then he left.",
    "Well... maybe not. | We shall see.",
    "And then it stopped... | Nothing moved.",
    '"Stop!" he cried. | "Why?" she asked. | "Because."',
    "He left (it was late.) | She stayed.",
    "What?! | You did it!!! | Great.",
    "Yahoo! is a company. | So is another.",
    "Apples, pears, etc. are fruits. | We sell pears, etc. | The shop is open.",
    "The meeting is at 5 p.m. on Monday. | Be there.",
    "Sales of Acme Inc. Rose bushes grew. | The end.",
    "Visit example.com or read v2.0.1 notes. | Bye.",
    "1. Open the box. | 2. Take it out.",
    "There are two reasons. | 1. Cost is one. | 2. Time is another.",
    "So did I. | Then we slept.",
    "The team won 3 – 1 . | The crowd cheered , and went home . | It rained .",
    "It began in 1990. | Everybody remembers.",
    # Korean
    "오늘은 날씨가 좋다. | 그래서 산책을 갔다. | 너도 갈래? | 응!",
    "정말 감사합니다 | 다음에 또 오겠습니다 | 안녕히 계세요",
    "맛있어요 | 또 먹고 싶네요 | 그렇죠 | 네",
    "그는 좋아요 라고 말했다. | 나는 웃었다.",
    '"정말입니까?" 라고 물었다. | 대답이 없었다.',
    '"비가 온다." 하고 그가 말했다. | 우산을 폈다.',
    "2019. 3. 1. 오전에 만났다. | 그리고 헤어졌다.",
    "그게... 사실은 몰랐어요. | 미안해요...  | 다음부터 조심할게요.",
    "값은 3.5배로 올랐다. | 놀랍다!",
    "감사합니다 ㅠㅠ 최고예요 | 추천합니다",
    "이유는 다음과 같습니다. | 1. 비용이 든다. | 2. 시간이 든다.",
    "버스가 왔습니다만 타지 못했다. | 걸어갔다.",
    # Chinese and Japanese, where no white space follows
    "今天天气很好。|我们去公园吧！|好吗？|好。",
    "彼は「はい。」と言った。|そして帰った。",
    "“走吧！”|他说完就走了。",
]


@pytest.mark.parametrize("case", CASES)
def test_rules(case):
    sentences = [sentence.strip() for sentence in case.split("|")]
    document = case.replace(" | ", " ").replace("|", "")
    assert sentence_splitter("rules")(document) == sentences


def test_a_line_ends_a_sentence():
    split = sentence_splitter("rules")
    assert split("A Title\nThe text begins. It ends\n\n  \n제목\n본문이다") == [
        *("A Title", "The text begins.", "It ends", "제목", "본문이다")
    ]


def test_hard_wrapped_prose_is_joined():
    split = sentence_splitter("rules")
    first = "This is a line of prose that somebody wrapped at a fixed width so"
    assert split(f"{first}\nthat it goes on. Then\nthe next") == [f"{first} that it goes on.", "Then", "the next"]
    # A short line, a line that ends like a sentence, a next line in upper case: these are ends.
    assert split("a short line\ngoes on") == ["a short line", "goes on"]
    assert split(f"{first}.\nthat is it") == [f"{first}.", "that is it"]
    assert split(f"{first}\nThat is it") == [first, "That is it"]


@pytest.mark.parametrize("run", ["？", "？！", "？!", "。!？"])
def test_a_run_of_full_width_marks_is_gone_through_once(run):
    # From each mark to the run's end anew would be ten thousand million steps.
    text = run * 100_000 + "，"
    assert sentence_splitter()(text) == [text]
    assert sentence_splitter()(run * 100_000 + "다음") == [run * 100_000, "다음"]


def test_lines():
    assert sentence_splitter("lines")(" One. Two.\n\n \nThree\u2028four \n") == ["One. Two.", "Three\u2028four"]


ANY_TEXT = st.text(st.one_of(st.sampled_from(" \n\t.!?…。！\"')AaIé1다요죠니까라고"), st.characters()), max_size=200)


@pytest.mark.parametrize("kind", ["rules", "lines"])
@given(text=ANY_TEXT)
def test_no_text_is_lost(kind, text):
    sentences = sentence_splitter(kind)(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() and "\n" not in sentence for sentence in sentences)


def test_no_text_is_lost_in_real_documents(data):
    split = sentence_splitter("rules")
    for corpus in (
        Corpus([data / "wikitext-2" / "test.txt"]),
        Corpus([data / "petitions" / "petitions_2019-05.jsonl"], ReadOptions(field="content")),
    ):
        sentences = 0
        characters = 0
        for document in corpus:
            found = split(document.text)
            assert "".join("".join(found).split()) == "".join(document.text.split())
            sentences += len(found)
            characters += len(document.text)
        # Neither left whole nor cut to pieces.
        assert 40 < characters / sentences < 160


def test_kiwi():
    pytest.importorskip("kiwipiepy")
    split = sentence_splitter("kiwi")
    assert split("오늘은 날씨가 좋다 그래서 산책을 갔다\n\n정말 좋았어요 또 갈래요") == [
        *("오늘은 날씨가 좋다", "그래서 산책을 갔다", "정말 좋았어요", "또 갈래요")
    ]
    assert split(" \n ") == []


def test_kiwi_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    with pytest.raises(MalmoiError, match=r'pip install "malmoi\[ko\]"'):
        sentence_splitter("kiwi")


@pytest.mark.parametrize("kind", ["rules", "lines"])
@pytest.mark.parametrize("seed", range(20))
def test_the_parts_of_a_document_have_the_sentences_of_the_whole(kind, seed):
    """Texts of everything the rules look at, with and without lines, cut as often as possible."""
    random = Random(seed)
    words = (
        "The cat sat.|the dog|Mr. Smith|J. R.|etc. The|No. 5|U.S.|(yes.)|Wow!|she said. Then we|1. 서론|2019. 3. 1.|"
        "갔습니다|좋아요 라고|했다. 만,|그게...|사실은|정말 그래요. 나는|집에 갔다. 그리고|"
        "はい。」|と言った|。!」|？！|" + "a" * 60
    ).split("|")
    spaces = [" "] if seed % 2 else [" ", "  ", "\n", "\n\n", " \n", "", ". "]
    split = sentence_splitter(kind)
    number = 0
    for _ in range(40):
        text = "".join(random.choice(words) + random.choice(spaces) for _ in range(60))
        parts = list(cut_document(text, kind, 5))
        assert "".join(parts) == text
        assert [sentence for part in parts for sentence in split(part)] == split(text)
        number += len(parts) - 1
    assert number > 30 or (kind == "lines" and seed % 2)


def test_parts_are_no_longer_than_need_be():
    lines = "We went home. Then we slept and dreamt of a very long sentence about nothing at all.\n" * 1000
    for text in (lines, lines.replace("\n", " ")):
        assert max(map(len, cut_document(text, "rules", 1000))) < 1200
    assert list(cut_document(lines.replace("\n", " "), "kiwi", 1000)) == [lines.replace("\n", " ")]
