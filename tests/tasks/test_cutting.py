"""Texts are cut into words as the words were that a model has learned from."""

import json
from itertools import pairwise

import pytest
import toys
from hypothesis import given
from hypothesis import strategies as st

from malmoi.tasks.cutting import USUAL, WordCut, learn_cut, read_cut, write_cut
from malmoi.tasks.examples import Tagged
from malmoi.tasks.options import FinetuningOptions
from malmoi.tasks.tagging import TagWords

# As treebanks and the tagging data made after them have it.
TREEBANK = [
    sentence.split()
    for sentence in (
        "Germany 's Franco-German talks in the U.S. cost $ 1,000 , said Mr. J. Smith of Corp. Ltd .",
        "In Brussels , 3.5 % of Jean-Paul 's friends were in France , Germany and the U.K. today .",
        "They came in 2005 , 42 of them ; O'Neill and Mr. Brown ( both 30 ) left .",
        '" We go " , he said .',
    )
    * 5
]


def cut(words, text):
    how = learn_cut(words)
    return [text[start:end] for start, end in how.find_words(text)]


def test_as_treebanks_cut():
    text = "Franco-British talks in Brussels, Germany's and the U.S.-led: \"Mr. A. O'Neill paid $2,500.\" (3.2%)"
    expected = (
        "Franco-British talks in Brussels , Germany 's and the U.S.-led : \" Mr. A. O'Neill paid $ 2,500 . \" ( 3.2 % )"
    )
    assert cut(TREEBANK, text) == expected.split()
    assert cut(TREEBANK, "Germany’s") == ["Germany", "’s"]


def test_one_abbreviation_changes_nothing():
    plain = ["Berlin is in Germany , not in France .".split()] * 50
    assert cut([*plain, ["The", "U.S.", "and", "Mr.Smith", "left."]], "In Brussels, Germany. (France)") == [
        *("In", "Brussels", ",", "Germany", ".", "(", "France", ")")
    ]


def test_marks_by_majority():
    split = ["Franco - German trade rose 3 . 5 % in the U . S . and Jean - Paul 's".split()] * 5
    assert cut([*split, ["Anglo-Saxon"]], "Anglo-Irish in 3.5") == ["Anglo", "-", "Irish", "in", "3", ".", "5"]
    tweets = ["@anna is in #berlin , 100% !".split()] * 5
    assert cut(tweets, "so @peter, #paris. 50%!") == ["so", "@peter", ",", "#paris", ".", "50%", "!"]


def test_at_spaces():
    words = ["나는 서울에서, 부산으로 갔다.".split(), "“그래?” 라고 했다.".split()]
    assert cut(words, "너는\u00a0부산에서,  갔다.") == ["너는", "부산에서,", "갔다."]


def test_characters():
    korean = [list("나는 서울에 갔다."), list("네")] * 3
    assert cut(korean, "a 나.") == ["a", " ", "나", "."]
    chinese = [list("我在北京。"), list("你好")]
    assert learn_cut(chinese).form == "characters"
    # One space among words is no sign of characters.
    assert learn_cut([["In", "\u3000", "Berlin"], ["He", "left", "."]] * 3).form == "punctuation"


def test_letters_of_every_script_stay_together():
    text = "हिन्दी में, किताब"
    assert cut(["He came , and left .".split()], text) == ["हिन्दी", "में", ",", "किताब"]


@pytest.mark.parametrize(
    ("text", "entity", "wanted"),
    [
        ("in Brussels.", "Brussels.", "Brussels"),
        ("(the “Spiegel”),", "“Spiegel”),", "“Spiegel”"),
        ("in the U.S.", "U.S.", "U.S."),
        ("of Georgia (country), too", "Georgia (country),", "Georgia (country)"),
        ('"Weird Al" Yankovic,', '"Weird Al" Yankovic,', '"Weird Al" Yankovic'),
        ("부산에서,", "부산에서,", "부산에서"),
        ("...", "...", "."),
    ],
)
def test_punctuation_does_not_belong_to_an_entity(text, entity, wanted):
    start = text.index(entity)
    first, last = WordCut("spaces").trim(text, (start, start + len(entity)))
    assert text[first:last] == wanted
    assert WordCut("punctuation").trim(text, (start, start + len(entity))) == (start, start + len(entity))


@given(st.lists(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=6), max_size=6), st.text(max_size=40))
def test_no_letter_is_lost_and_the_folder_remembers(sentences, text):
    how = learn_cut(sentences)
    assert read_cut(json.loads(json.dumps(write_cut(how)))) == how
    spans = how.find_words(text)
    assert all(0 <= a < b <= len(text) for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in pairwise(spans))
    covered = {place for start, end in spans for place in range(start, end)}
    assert all(place in covered or character.isspace() for place, character in enumerate(text))


def test_folders_of_others():
    assert read_cut({}) == USUAL == read_cut({"words": "strange"})
    assert read_cut({"words": "spaces"}) == WordCut("spaces")
    strange = {"inside": 3, "numbers": "(", "clitics": "s", "abbreviations": [")("], "form": "x", "more": 1}
    found = read_cut({"words": "punctuation", "kept": strange})
    assert found == WordCut("punctuation", numbers="(", abbreviations=(")(",))
    assert found.find_words("a(b 1(2") == [(0, 1), (1, 2), (2, 3), (4, 7)]
    text = "Germany's talks in Brussels, the U.S."
    assert [text[a:b] for a, b in USUAL.find_words(text)] == "Germany 's talks in Brussels , the U.S.".split()


# Sentences as texts


def kind_for(sentences):
    examples = [Tagged(tuple(words), ("O", *("B-X",) * (len(words) - 1)), "") for words in sentences]
    bundle = toys.make_bundle()
    return TagWords(bundle.tokenizer, TagWords.make_head(examples, FinetuningOptions()), 32), examples


def test_a_model_cuts_as_its_examples_were_and_keeps_the_text():
    kind, _ = kind_for(TREEBANK)
    text = "In Brussels.\r\n  Germany, France  and the U.S."
    [example] = kind.take_texts([text])
    assert list(example.words) == ["In", "Brussels", ".", "Germany", ",", "France", "and", "the", "U.S."]
    laid, spans = example.lay_out()
    assert laid == text and [text[a:b] for a, b in spans] == list(example.words)


def test_a_space_among_words_does_not_glue_a_sentence():
    kind, examples = kind_for([["In", "\u00a0", "Berlin"], ["In", "\u3000", "U"], ["He", "left", "."]] * 3)
    assert kind._lay_out(examples[0]) == ("In \u00a0 Berlin", [(0, 2), (3, 4), (5, 11)])
    assert examples[1].lay_out()[0] == "In \u3000 U"


def test_a_sentence_of_characters_gets_no_spaces():
    kind, examples = kind_for([list("나는 간다"), list("안녕"), [*"좋다", "👨\u200d👩\u200d👧"]])
    assert [kind._lay_out(one)[0] for one in examples] == ["나는 간다", "안녕", "좋다👨\u200d👩\u200d👧"]
    words, _ = kind_for([["I", "am", "."], ["I", "x"], ["He", "left"]])
    assert words._lay_out(Tagged(("I", "x"), None, ""))[0] == "I x"


def test_punctuation_without_a_piece_of_its_own_ends_an_entity():
    kind, _ = kind_for([list("나는 간다"), list("안녕")])
    kind.head = kind.head.__class__("tokens", ("O", "B-X", "I-X"), settings=kind.head.settings)
    tagged = kind._complete(Tagged(tuple("서울-역."), None, ""), {0: ("B-X", 0.9), 3: ("I-X", 0.8)})
    assert [(one.text, one.start, one.end) for one in tagged.entities] == [("서울-역", 0, 4)]
