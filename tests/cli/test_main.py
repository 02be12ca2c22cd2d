"""The frame of the command line: what it imports, and the demo."""

import subprocess
import sys

import pytest
from corpora import korean_documents

HEAVY = ["torch", "transformers", "tokenizers", "numpy", "pyarrow"]


def imports_of(*words):
    """Which heavy modules a command has imported by its end."""
    program = (
        "import sys, runpy; sys.argv = ['malmoi', *sys.argv[1:]]\n"
        "try: runpy.run_module('malmoi', run_name='__main__')\n"
        "except SystemExit: pass\n"
        f"print('IMPORTED', *[name for name in {HEAVY} if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True)
    return finished.stdout.strip().splitlines()[-1].split()[1:]


def test_help_and_mistakes_import_nothing_heavy():
    assert imports_of("--help") == []
    assert imports_of("--version") == []
    assert imports_of("prepare", "x.txt", "--no-such-option") == []
    assert imports_of("inspect", "nowhere", "--mask-share", "7") == []


def test_import_malmoi_imports_nothing_heavy():
    program = f"import sys, malmoi; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_check_and_the_whole_way_to_examples_need_no_torch(tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(korean_documents(30)), "utf-8")
    for words in (
        ["check", tmp_path / "a.txt"],
        ["tokenizer", "train", tmp_path / "a.txt", "--vocab-size", 500, "--out", tmp_path / "tok"],
        ["prepare", tmp_path / "a.txt", "--tokenizer", tmp_path / "tok", "--out", tmp_path / "store"],
        ["inspect", tmp_path / "store", "--examples", 10],
    ):
        assert "torch" not in imports_of(*words)
    assert (tmp_path / "store" / "store.json").is_file()


@pytest.mark.parametrize("command", [[], ["check"], ["tokenizer", "train"], ["prepare"], ["inspect"], ["demo"]])
def test_every_command_has_help(malmoi, command):
    shown = malmoi(*command, "--help")
    assert shown.returncode == 0 and "Usage: malmoi" in shown.stdout


def test_the_version_is_the_package_s(malmoi):
    import malmoi as package

    assert malmoi("--version").stdout.strip() == package.__version__


def test_the_demo_needs_nothing_but_python(malmoi, tmp_path):
    shown = malmoi("demo", "--steps", 12)
    assert shown.returncode == 0, shown.stderr
    parts = ("1. Text", "2. Tokenizer", "3. Store", "4. Examples", "5. Training", "token_type_ids", "[MASK](", "Near “")
    for part in (*parts, "by word frequency"):
        assert part in shown.stdout
    assert (tmp_path / "malmoi-demo" / "run" / "report.html").is_file()
    again = malmoi("demo", "--steps", 12)
    assert again.returncode == 0 and again.stdout.splitlines()[-5:] == shown.stdout.splitlines()[-5:]


def test_the_demo_on_korean_text(malmoi, tmp_path):
    (tmp_path / "우리 글.txt").write_bytes("\n\n".join(korean_documents(80)).encode("cp949"))
    shown = malmoi("demo", "우리 글.txt", "--out", "결과", "--steps", 12)
    assert shown.returncode == 0, shown.stderr
    assert "Hangul syllables" in shown.stdout and "80 documents" in shown.stdout
    assert (tmp_path / "결과" / "store" / "store.json").is_file()


def test_a_closed_pipe_is_no_error(tmp_path):
    shown = subprocess.run(
        f"{sys.executable} -m malmoi inspect --help | head -1", shell=True, capture_output=True, text=True, cwd=tmp_path
    )
    assert shown.stdout and not shown.stderr
