"""A folder that grows: only what was noted is trusted, only the same work goes on with it, failures are a sentence."""

import errno

import pytest

from malmoi.data.growing import GrowingFolder
from malmoi.errors import MalmoiError

NAMES = ("a", "b")


def grow(path, recipe=None, *, can_resume=True):
    return GrowingFolder(path / "out.partial", NAMES, recipe or {"files": ("x", 1)}, can_resume=can_resume)


@pytest.fixture
def interrupted(tmp_path):
    """A folder in which one block was noted and half of another written."""
    with pytest.raises(KeyboardInterrupt), grow(tmp_path) as files:
        assert files.facts is None
        files.append("a", b"one")
        files.append("b", b"1")
        files.note({"blocks": 1})
        files.append("a", b"tw")
        raise KeyboardInterrupt
    return tmp_path


def read(path):
    return [(path / "out.partial" / name).read_bytes() for name in NAMES]


def test_what_stands_behind_the_last_note_is_cut_off(interrupted):
    assert read(interrupted) == [b"onetw", b"1"]
    with grow(interrupted) as files:
        assert files.facts == {"blocks": 1}
        files.append("a", b"two")
        files.note({"blocks": 2})
    assert read(interrupted) == [b"onetwo", b"1"]
    with grow(interrupted) as files:
        assert files.facts == {"blocks": 2}


@pytest.mark.parametrize("change", ["recipe", "pipe", "journal", "missing", "short"])
def test_what_cannot_be_trusted_is_begun_anew(interrupted, change):
    folder = interrupted / "out.partial"
    recipe = {"files": ("x", 2)} if change == "recipe" else None
    if change == "journal":
        (folder / "journal.json").write_text('{"recipe": {}, "blocks"')
    elif change == "missing":
        (folder / "b").unlink()
    elif change == "short":
        (folder / "a").write_bytes(b"on")
    with grow(interrupted, recipe, can_resume=change != "pipe") as files:
        assert files.facts is None
    assert read(interrupted) == [b"", b""]


def test_one_process_at_a_time(tmp_path):
    with grow(tmp_path), pytest.raises(MalmoiError, match="another malmoi is writing here"), grow(tmp_path):
        pass


def test_a_failure_to_write_says_what_is_kept(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(MalmoiError, match=r"out\.partial: No space left on device; what was done"), grow(tmp_path):
        raise full
    with pytest.raises(MalmoiError, match=r"No space left on device\.$"), grow(tmp_path, can_resume=False):
        raise full
    with pytest.raises(FileNotFoundError), grow(tmp_path):
        (tmp_path / "corpus.txt").read_text()


def test_nothing_is_left_of_what_is_discarded(interrupted):
    with grow(interrupted) as files:
        files.discard()
    assert not (interrupted / "out.partial").exists()
