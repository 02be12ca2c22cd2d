"""Is a film review good or bad? A model learns it from NSMC (1 is good, 0 is bad) and judges reviews of your own.

python recipes/sentiment.py MODEL ../shared/data/nsmc/train.txt "또 보고 싶은 영화" --epochs 1 --out sentiment
"""

from pathlib import Path

import cyclopts

import malmoi


def main(model: str, train: Path, /, *reviews: str, out: Path, options: malmoi.FinetuningOptions | None = None) -> None:
    """Learn, then judge."""
    columns = malmoi.Columns(text="document", label="label", format="tsv", skip_empty=True)
    folder = malmoi.finetune("classify", [train], model=model, out=out, columns=columns, options=options)
    for review, judged in zip(reviews, malmoi.load(folder).classify(list(reviews)), strict=True):
        print(f"{judged.scores['1']:.0%} good: {review}")


if __name__ == "__main__":
    cyclopts.run(main)
