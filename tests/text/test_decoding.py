"""Encodings are found in one pass, however the bytes are cut, and a flaw is named with its exact place."""

import codecs
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malmoi import MalmoiError
from malmoi.text.decoding import TextDecoder, find_encoding

KOREAN = "안녕하세요. 말모이는 우리말 사전의 원고입니다.\n똠방각하가 펲시콜라를 마신다.\n"
ENGLISH = "It was a bright cold day in April.\nThe clocks were striking.\n"


def decode(data: bytes, encoding: str = "auto", piece: int = 1 << 20) -> tuple[str, str | None]:
    decoder = TextDecoder("file.txt", find_encoding(encoding))
    text = "".join(decoder.decode(data[start : start + piece] for start in range(0, len(data), piece)))
    return text, decoder.encoding


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (KOREAN.encode(), "utf-8"),
        (codecs.BOM_UTF8 + KOREAN.encode(), "utf-8"),
        (KOREAN.encode("cp949"), "cp949"),
        (codecs.BOM_UTF16_LE + KOREAN.encode("utf-16-le"), "utf-16-le"),
        (codecs.BOM_UTF16_BE + KOREAN.encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF32_LE + KOREAN.encode("utf-32-le"), "utf-32-le"),
        (codecs.BOM_UTF32_BE + KOREAN.encode("utf-32-be"), "utf-32-be"),
        (KOREAN.encode("utf-16-le"), "utf-16-le"),
        (KOREAN.encode("utf-16-be"), "utf-16-be"),
    ],
)
def test_korean_in_every_encoding_and_cut(data, encoding, piece):
    assert decode(data, piece=piece) == (KOREAN, encoding)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [ENGLISH, "中文没有空格。\n" * 3, "“Quoted” – and plain.\n"])
def test_utf16_without_a_mark(text, encoding):
    assert decode(text.encode(encoding)) == (text, encoding)


def test_ascii_is_reported_as_utf8():
    assert decode(ENGLISH.encode()) == (ENGLISH, "utf-8")


@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
def test_first_korean_after_two_megabytes_of_ascii(encoding):
    text = ENGLISH * 40_000 + KOREAN
    assert decode(text.encode(encoding)) == (text, encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "cp949"])
@pytest.mark.parametrize("shift", range(4))
def test_a_character_cut_by_the_window_does_not_mislead(encoding, shift):
    text = "a" * shift + "가나다라마바사" * 20_000
    assert decode(text.encode(encoding), piece=65_536) == (text, encoding)


@given(st.text(st.characters(codec="cp949", exclude_characters="\r\0"), min_size=1), st.integers(1, 9))
def test_given_cp949_comes_back(text, piece):
    assert decode(text.encode("cp949"), "euc-kr", piece) == (text, "cp949")


@given(st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"])), st.integers(1, 9))
def test_utf8_comes_back(text, piece):
    # A leading U+FEFF is a mark, not text.
    expected = text.removeprefix("\ufeff")
    assert decode(text.encode(), "utf-8", piece)[0] == expected


@pytest.mark.parametrize("piece", [1, 2, 5, 100])
def test_line_ends_become_newlines_and_nothing_else_does(piece):
    data = "가\r\n나\r다\n\r\n라\u2028마\x0b\x0c\x85끝\r".encode()
    assert decode(data, piece=piece)[0] == "가\n나\n다\n\n라\u2028마\x0b\x0c\x85끝\n"


def refusal(data: bytes, encoding: str = "auto", piece: int = 1 << 20) -> str:
    with pytest.raises(MalmoiError) as caught:
        decode(data, encoding, piece)
    return str(caught.value)


@pytest.mark.parametrize("piece", [1, 4, 1 << 20])
def test_undecodable_byte_is_named_with_its_place(piece):
    data = KOREAN.encode() + "다음 ".encode()
    sentence = refusal(data + b"\xff" + KOREAN.encode(), piece=piece)
    for word in ("file.txt, line 3:", "0xff", f"offset {len(data)} ", "utf-8", "--encoding"):
        assert word in sentence


def test_undecodable_byte_far_behind_the_window():
    data = KOREAN.encode("cp949") * 30_000
    sentence = refusal(data + b"\x80" + data)
    for word in ("line 60001:", "0x80", f"offset {len(data)} ", "cp949"):
        assert word in sentence


def test_file_that_ends_within_a_character():
    assert "line 2" in refusal(b"First\n" + "가나다".encode()[:-1])


def test_latin1_is_not_guessed():
    assert "0xe9 at offset 3" in refusal(b"caf\xe9 au lait\n")
    assert decode(b"caf\xe9 au lait\n", "latin-1")[0] == "café au lait\n"


@pytest.mark.parametrize(
    "text",
    [
        "It’s here",
        "“Yes” — he said… and left.\nIt’s the dogs’ home.\n",
        "Änderungen über Äpfel: «Ärger» ist groß.\n",
        "¿Qué? ¡Hola! ¿Éxito? España",
        "« Où est l’été ? » Créée à Noël, l’œuvre coûte 5 €.",
        "São Paulo, ação, Çidade",
        "n° 5, 20 °C, ½, ±3, Ångström, ÀÉÈ",
    ],
)
@pytest.mark.parametrize("repeated", [1, 5000])
def test_western_text_is_not_taken_for_korean(text, repeated):
    text = (text.strip() + "\n") * repeated
    sentence = refusal(text.encode("cp1252"))
    assert "--encoding cp1252" in sentence and "read as cp1252" in sentence
    assert decode(text.encode("cp1252"), "cp1252") == (text, "cp1252")


def test_the_complaint_shows_how_it_would_read():
    sentence = refusal(ENGLISH.encode() + "It’s here\n".encode("cp1252"))
    assert "line 3: byte 0x92 at offset 63" in sentence and "It’s here" in sentence


@pytest.mark.parametrize(
    "text",
    [
        "김치",
        "홍길동, 김철수",
        "ㅋㅋㅋ",
        "추천~!",
        "TV를 보다가",
        "大韓民國의 主權은 國民에게 있고",
        "OK! 재밌네 :) 뷁",
    ],
)
def test_little_korean_is_enough(text):
    assert decode(text.encode("cp949")) == (text, "cp949")
    assert decode((ENGLISH + text).encode("cp949")) == (ENGLISH + text, "cp949")


@pytest.mark.parametrize("other", ["gb2312", "euc_jp", "shift_jis", "big5"])
def test_other_asian_encodings_are_not_taken_for_korean(other):
    text = {
        "gb2312": "北京是中华人民共和国的首都，是全国政治中心。",
        "big5": "臺北市是中華民國的首都，也是最大的城市。",
    }
    japanese = "自然言語処理は、人間が使っている言語を処理させる技術である。"
    assert "--encoding" in refusal(text.get(other, japanese).encode(other))


def test_real_reviews_in_cp949_are_recognised_one_by_one(data):
    lines = (data / "nsmc" / "test.txt").read_text(encoding="utf-8").split("\n")[1::10]
    texts = [line.split("\t")[1] for line in lines if line.count("\t") == 2]
    texts = [text for text in texts if not text.isascii() and text.encode("cp949", "ignore").decode("cp949") == text]
    unknown = 0
    for text in texts:
        try:
            unknown += decode(text.encode("cp949")) != (text, "cp949")
        except MalmoiError:
            unknown += 1
    assert len(texts) > 4900
    # "굿" and the like: a single syllable says too little, and "퉤퉤퉤" are bytes of UTF-8 too.
    assert unknown <= 50


def test_real_english_with_typographic_quotes_is_never_korean(data):
    text = (data / "wikitext-2" / "test.txt").read_text(encoding="utf-8")
    text = text.replace(" 's", "’s").replace(" — ", "—").replace(" – ", "–").encode("cp1252", "ignore")
    for paragraph in [one for one in text.split(b"\n") if not one.isascii()]:
        assert "--encoding cp1252" in refusal(paragraph)


def test_nul_byte_is_named_with_its_line():
    assert "line 2: there is a NUL" in refusal(ENGLISH.split("\n")[0].encode() + b"\nab\0cd\n")
    assert "line 1: there is a NUL" in refusal(b"a\0b\nabc\n" * 3)
    # far behind the beginning that is looked at first
    assert "line 4001: there is a NUL" in refusal(KOREAN.encode() * 2000 + b"\0")


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        b"\x7fELF\x02\x01\x01" + bytes(64),
        b"PK\x03\x04" + bytes(range(200)),
        b"\x80\x04\x95\x10\x00\x00",
        bytes(range(256)) * 20,
        bytes(1000),
        bytes(range(1, 32)) * 5,
        struct.pack("<20h", *range(110, 190, 4)),
    ],
)
def test_binary_files(data):
    assert "looks like a binary file" in refusal(data)


@pytest.mark.parametrize("name", ["euc-kr", "EUC_KR", "ks_c_5601-1987", "cp949", "ms949", "uhc", "windows-949"])
def test_names_of_the_korean_encoding(name):
    # 똠 and 펲 are in CP949 but not in plain EUC-KR.
    assert decode(KOREAN.encode("cp949"), name) == (KOREAN, "cp949")


@pytest.mark.parametrize(("name", "hint"), [("utf-9", "utf-8"), ("cp94", "cp949"), ("hex", "try"), ("rot13", "try")])
def test_unknown_encoding(name, hint):
    with pytest.raises(MalmoiError, match=f"--encoding {name}: .*{hint}"):
        find_encoding(name)


def test_given_utf16_takes_the_mark_or_little_endian():
    assert decode(KOREAN.encode("utf-16"), "utf-16") == (KOREAN, "utf-16-le")
    assert decode(codecs.BOM_UTF16_BE + KOREAN.encode("utf-16-be"), "utf-16") == (KOREAN, "utf-16-be")
    assert decode(KOREAN.encode("utf-16-le"), "utf-16") == (KOREAN, "utf-16-le")
