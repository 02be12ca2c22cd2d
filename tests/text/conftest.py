"""Write a file and read it as a corpus."""

import pytest

from malmoi import MalmoiError
from malmoi.text.reading import Corpus, ReadOptions


@pytest.fixture
def read(tmp_path):
    """Write a file, read it, and return its documents as (line, text) and its report."""

    def run(name: str, content: bytes | str, **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        corpus = Corpus([path], ReadOptions(**options))
        documents = [(document.line, document.text) for document in corpus]
        assert corpus.bytes_read == corpus.total_bytes == path.stat().st_size
        [report] = corpus.reports
        assert report.documents == len(documents)
        return documents, report

    return run


@pytest.fixture
def refusal(read):
    def run(name: str, content: bytes | str, **options) -> str:
        with pytest.raises(MalmoiError) as caught:
            read(name, content, **options)
        assert name in str(caught.value)
        return str(caught.value)

    return run
