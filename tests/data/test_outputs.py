"""What is there is never overwritten in silence, and no output is an input."""

import pytest

from malmoi import MalmoiError
from malmoi.data.outputs import find_made, note_made, refuse_inputs, refuse_old_folder


def test_the_same_recipe_has_nothing_to_do(tmp_path):
    out, recipe = tmp_path / "a.jsonl", {"files": ("x", 1)}
    assert find_made(out, recipe, can_repeat=True) is None
    note_made(out, {"recipe": recipe, "count": 3})
    assert find_made(out, recipe, can_repeat=True) is None  # interrupted before it was there
    out.write_text("made")
    assert find_made(out, recipe, can_repeat=True)["count"] == 3
    with pytest.raises(MalmoiError, match="was made from other text, options or model"):
        find_made(out, {"files": ("y", 1)}, can_repeat=True)
    with pytest.raises(MalmoiError, match="exists already"):
        find_made(out, recipe, can_repeat=False)


def test_what_is_not_ours_stays(tmp_path):
    (tmp_path / "theirs.csv").write_text("precious")
    with pytest.raises(MalmoiError, match=r"theirs\.csv exists already; choose another --out"):
        find_made(tmp_path / "theirs.csv", {}, can_repeat=True)
    (tmp_path / "new.csv.json").write_text("[1, 2]")
    with pytest.raises(MalmoiError, match=r"new\.csv\.json exists"):
        find_made(tmp_path / "new.csv", {}, can_repeat=True)


def test_no_output_is_an_input(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "a.jsonl").write_text("{}")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "a.jsonl")
    for out, read in (("a.jsonl", "a.jsonl"), ("a.jsonl", "link.jsonl"), ("b", "b.json")):
        with pytest.raises(MalmoiError, match="one of the inputs"):
            refuse_inputs(tmp_path / out, [tmp_path / read])
    with pytest.raises(MalmoiError, match="all of which is read"):
        refuse_inputs(tmp_path / "data" / "new.jsonl", [tmp_path / "data"])
    refuse_inputs(tmp_path / "data" / "new", [tmp_path / "data"], may_lie_within=True)
    refuse_inputs(tmp_path / "new.jsonl", [tmp_path / "a.jsonl", tmp_path / "data"])


def test_folders(tmp_path):
    refuse_old_folder(tmp_path / "new")
    refuse_old_folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    refuse_old_folder(tmp_path, unless_it_holds="tokenizer.json")
    for out in (tmp_path, tmp_path / "tokenizer.json"):
        with pytest.raises(MalmoiError, match="exists already"):
            refuse_old_folder(out)
