"""Does a sentence follow another? A model learns it from your documents: for each true pair there is a random one.

python recipes/next_sentence.py MODEL petitions.txt "배가 고팠다." "그래서 밥을 먹었다." --epochs 1 --out follows
"""

import json
import random
from itertools import pairwise
from pathlib import Path

import cyclopts

import malmoi
from malmoi import FinetuningOptions as Options
from malmoi.text.sentences import split_by_rules


def main(model: str, text: Path, first: str, second: str, /, *, out: Path, options: Options | None = None) -> None:
    """Cut pairs, learn, judge."""
    pairs = [pair for document in malmoi.Corpus([text]) for pair in pairwise(split_by_rules(document.text))]
    others = random.Random(0).sample([after for _, after in pairs], len(pairs))
    rows = [{"text": before, "pair": after, "label": "next"} for before, after in pairs]
    rows += [{"text": one[0], "pair": other, "label": "random"} for one, other in zip(pairs, others, strict=True)]
    Path(f"{out}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = malmoi.finetune("pair", [f"{out}.jsonl"], model=model, out=out, options=options)
    print(f"{malmoi.load(folder).classify([(first, second)])[0].scores['next']:.0%} that it follows")


if __name__ == "__main__":
    cyclopts.run(main)
