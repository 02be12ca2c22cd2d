"""Dataclasses from JSON: types are kept, unknown keys come back, a mistake names its place."""

import json
from dataclasses import dataclass
from typing import Literal

import pytest

from malmoi.config import read_dataclass, read_object, to_json
from malmoi.errors import MalmoiError


@dataclass(frozen=True)
class Example:
    size: int
    share: float = 0.1
    name: str = "한글"
    on: bool = False
    limit: int | None = None
    kind: Literal["a", "b"] = "a"
    sizes: list[int] | None = None


def test_what_is_written_is_read_again():
    example = Example(3, 0.25, "말", True, 7, "b", [1, 2])
    again, others = read_dataclass(Example, json.loads(json.dumps(to_json(example))), "here")
    assert again == example and others == {}


def test_unknown_keys_are_the_caller_s():
    example, others = read_dataclass(Example, {"size": 1, "extra": [1], "more": None}, "here")
    assert example == Example(1) and others == {"extra": [1], "more": None}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size", "3"),
        ("size", 3.0),
        ("size", True),
        ("size", None),
        ("share", "x"),
        ("share", float("nan")),
        ("share", float("inf")),
        ("share", True),
        ("name", 3),
        ("on", 1),
        ("limit", "none"),
        ("kind", "c"),
        ("sizes", [1, "2"]),
    ],
)
def test_a_value_of_another_type_is_refused(field, value):
    with pytest.raises(MalmoiError, match=rf"^here: {field} is .* needed\.$"):
        read_dataclass(Example, {"size": 1, field: value}, "here")


def test_whole_numbers_serve_as_numbers():
    assert read_dataclass(Example, {"size": 1, "share": 0}, "here")[0].share == 0


def test_a_missing_field_is_named():
    with pytest.raises(MalmoiError, match="here: size is missing"):
        read_dataclass(Example, {}, "here")


def test_a_file_beyond_all_settings_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(11_000_000)  # takes no room on the disk
    monkeypatch.setattr(json, "loads", lambda text: pytest.fail("it is parsed"))
    with pytest.raises(MalmoiError, match=r"config\.json takes 11,000,000 bytes"):
        read_object(path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe\x00", b'{"a": ' + b"[" * 200_000, b'{"a": ' + b"9" * 10_000 + b"}"]
)
def test_a_file_that_is_no_object_is_named(tmp_path, content):
    path = tmp_path / "설정.json"
    path.write_bytes(content)
    with pytest.raises(MalmoiError, match=r"설정\.json"):
        read_object(path)
