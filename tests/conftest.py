"""Where the real data lies, and how a test runs the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora and vocabularies; a test that needs it is skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip("the real data (../shared/data) is not on this machine")
    return DATA


@pytest.fixture
def malmoi(tmp_path):
    """Run `malmoi WORDS…` as a user would, in a fresh folder, and return the finished process."""

    def run(*words, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        finished = subprocess.run(
            [sys.executable, "-m", "malmoi", *map(str, words)],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            env={**os.environ, "COLUMNS": "120", **environment},
        )
        return subprocess.CompletedProcess(
            finished.args, finished.returncode, finished.stdout.decode("utf-8"), finished.stderr.decode("utf-8")
        )

    return run


@pytest.fixture
def refuses(malmoi):
    """Assert that a command ends with exit code 2 and one sentence that holds all the given words."""

    def run(*words, says: list[str], stdin: bytes | None = None) -> str:
        finished = malmoi(*words, stdin=stdin)
        assert finished.returncode == 2, finished.stdout + finished.stderr
        assert "Traceback" not in finished.stderr
        sentence = finished.stderr.strip().splitlines()[-1]
        for word in says:
            assert word in sentence, sentence
        return sentence

    return run
