"""The demo: text that is already on the machine, on its way through malmoi.

Any machine with Python has prose: the language reference behind `help()` and the docstrings of the standard library.
"""

from __future__ import annotations

import ast
import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from malmoi.writing import writing

_SKIPPED_FOLDERS = {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}


def write_documentation(path: Path) -> Path:
    """Write the documentation as JSON lines, unless an earlier demo has done so."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(path.name + ".partial")
        with writing(path), beside.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in collect_documentation())
        beside.replace(path)
    return path


def collect_documentation() -> Iterator[str]:
    """Python's own documentation: a document a topic of the language reference, then one a module, prose only."""
    from pydoc_data.topics import topics

    yield from filter(None, (keep_prose(topics[name]) for name in sorted(topics)))
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        if not _SKIPPED_FOLDERS.intersection(path.relative_to(library).parts):
            prose = keep_prose("\n\n".join(_read_docstrings(path)))
            if prose:
                yield prose


def keep_prose(text: str) -> str:
    """The paragraphs that are sentences, unwrapped, a line each: no code, tables, rulers or lists of arguments."""
    paragraphs = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return "\n".join(paragraph for paragraph in paragraphs if _is_prose(paragraph))


def _is_prose(paragraph: str) -> bool:
    letters = sum(character.isalpha() or character in " ,." for character in paragraph)
    return paragraph[:1].isupper() and paragraph[-1:] in ".:!?" and letters >= 0.9 * max(len(paragraph), 40)


def _read_docstrings(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # the library ships a few files that are broken on purpose
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text
