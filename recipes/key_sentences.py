"""Which sentences say most of what a document says? Those whose vectors are nearest to the vectors of all others.

python recipes/key_sentences.py MODEL document.txt --top 3
"""

from pathlib import Path

import cyclopts

import malmoi
from malmoi.text.sentences import split_by_rules


def main(model: str, document: Path, /, top: int = 3) -> None:
    """Print the best sentences in the order of the document, each with its likeness to the others."""
    sentences = split_by_rules(document.read_text("utf-8"))
    vectors = malmoi.load(model).embed(sentences, pool="mean", normalize=True, truncate="window")
    likeness = (vectors @ vectors.T).mean(axis=1)
    for place in sorted(likeness.argsort()[::-1][:top]):
        print(f"{likeness[place]:.2f} {sentences[place]}")


if __name__ == "__main__":
    cyclopts.run(main)
