"""Do two sentences mean the same? Vectors learn it from pairs that people have scored, and compare two of your own.

python recipes/same_meaning.py MODEL ../shared/data/kor-nlu/KorSTS/sts-train.tsv "비가 온다." "비가 내린다." --out same
"""

from pathlib import Path

import cyclopts

import malmoi


def main(
    model: str, train: Path, first: str, second: str, /, out: Path, options: malmoi.FinetuningOptions | None = None
) -> None:
    """Learn, then compare."""
    columns = malmoi.Columns(text="sentence1", pair="sentence2", label="score")
    folder = malmoi.finetune("embed", [train], model=model, out=out, columns=columns, options=options)
    print(f"{malmoi.load(folder).similar(first, second).score:.2f} (1 is the same)")


if __name__ == "__main__":
    cyclopts.run(main)
