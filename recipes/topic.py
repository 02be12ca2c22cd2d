"""What is a headline about? A model learns the topics of KLUE's news titles and names those of your own.

python recipes/topic.py MODEL ../shared/data/klue/ynat_train_dacon.csv "이번 주말 전국에 비" --epochs 1 --out topic
"""

from pathlib import Path

import cyclopts

import malmoi

TOPICS = ("IT·과학", "경제", "사회", "생활·문화", "세계", "스포츠", "정치")  # what the numbers in the file stand for


def main(model: str, train: Path, /, *titles: str, out: Path, options: malmoi.FinetuningOptions | None = None) -> None:
    """Learn, then name."""
    columns = malmoi.Columns(text="title", label="topic_idx")
    folder = malmoi.finetune("classify", [train], model=model, out=out, columns=columns, options=options)
    for title, judged in zip(titles, malmoi.load(folder).classify(list(titles)), strict=True):
        print(f"{TOPICS[int(judged.label)]} ({judged.scores[judged.label]:.0%}): {title}")


if __name__ == "__main__":
    cyclopts.run(main)
