"""Write a file and read it as the examples of a task."""

import pyarrow
import pyarrow.parquet
import pytest

from malmoi import MalmoiError
from malmoi.tasks.reading import Columns, ReadingNotes, read_examples


@pytest.fixture
def read(tmp_path):
    """Write a file, read it, and return its examples; `read.notes` are those of the last reading."""

    def run(task: str, name: str, content: bytes | str, *, labelled: bool = True, **columns):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        run.notes = ReadingNotes()
        return list(read_examples(task, [path], Columns(**columns), labelled=labelled, notes=run.notes))

    return run


@pytest.fixture
def refusal(read):
    """The sentence with which a file is refused; it has to name the file."""

    def run(task: str, name: str, content: bytes | str, **options) -> str:
        with pytest.raises(MalmoiError) as caught:
            read(task, name, content, **options)
        sentence = str(caught.value)
        assert name in sentence and "\n" not in sentence
        return sentence

    return run


@pytest.fixture
def make_parquet(tmp_path):
    """The bytes of a Parquet file with these columns."""

    def make(columns: dict) -> bytes:
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "written")
        return (tmp_path / "written").read_bytes()

    return make
