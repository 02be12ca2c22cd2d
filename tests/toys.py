"""Small Korean sets for each task: what is asked hangs on a few words, so that a tiny model learns it in seconds."""

from random import Random

import torch
from corpora import korean_documents
from models import SMALL

from malmoi.checkpoint.bundle import create_bundle
from malmoi.tasks.examples import Answer, Choice, Classified, Question, Scored, Tagged
from malmoi.tasks.finetuning import TaskData, finetune, prepare_finetuning
from malmoi.tasks.options import FinetuningOptions
from malmoi.text.tokenizer_training import train_tokenizer
from malmoi.training.distributed import World

GOOD, BAD = "훌륭한 즐거운 아름다운".split(), "지루한 끔찍한 시시한".split()
WHO = "학생이 할머니가 고양이가 친구가".split()
PLACES = "서울 부산 제주도 한강".split()
WHAT = "영화를 노래를 사진을 편지를".split()
DOES = "보았다. 들었다. 찍었다. 썼다.".split()


def _fill(random, words):
    return [random.choice(words) for _ in range(random.randint(0, 5))]


def sentiment(count=256, seed=0, pair=False):
    random = Random(seed)
    made = []
    for number in range(count):
        label = random.choice(["좋음", "나쁨"])
        words = [random.choice(WHO), *_fill(random, PLACES), random.choice(GOOD if label == "좋음" else BAD)]
        text = " ".join([*words, random.choice(WHAT), random.choice(DOES)])
        first = " ".join([random.choice(WHO), random.choice(DOES)])
        made.append(Classified(first if pair else text, text if pair else None, (label,), f"줄 {number}"))
    return made


def topics(count=256, seed=0):
    """Several labels: what is named."""
    random = Random(seed)
    made = []
    for number in range(count):
        chosen = [word for word in (GOOD[0], PLACES[0], WHAT[0]) if random.random() < 0.5]
        # Always three, so that the length tells nothing.
        others = [random.choice(BAD) for _ in range(3 - len(chosen))]
        text = " ".join([random.choice(WHO), *chosen, *others, random.choice(DOES)])
        made.append(Classified(text, None, tuple(chosen), f"줄 {number}"))
    return made


def scores(count=256, seed=0):
    random = Random(seed)
    made = []
    for number in range(count):
        score = random.randint(0, 3)
        text = " ".join([random.choice(WHO), *[GOOD[0]] * score, *[BAD[0]] * (3 - score), random.choice(DOES)])
        made.append(Scored(text, None, float(score), f"줄 {number}"))
    return made


def tags(count=256, seed=0):
    random = Random(seed)
    made = []
    for number in range(count):
        words, marks = [random.choice(WHO)], ["O"]
        for _ in range(random.randint(1, 3)):
            place = random.choice(PLACES)
            words += [place, "거리에서", random.choice(WHAT)]
            marks += ["B-곳", "I-곳", "O"]
        made.append(Tagged((*words, random.choice(DOES)), (*marks, "O"), f"줄 {number}"))
    return made


def characters(count=128, seed=0):
    """The same, with a tag for each character."""
    made = []
    for one in tags(count, seed):
        letters, marks = [], []
        for word, mark in zip(one.words, one.tags, strict=True):
            if letters:
                letters.append(" ")
                marks.append("I-곳" if mark == "I-곳" else "O")
            letters += word
            marks += [mark, *["O" if mark == "O" else f"I-{mark[2:]}"] * (len(word) - 1)]
        made.append(Tagged(tuple(letters), tuple(marks), one.place))
    return made


def questions(count=256, seed=0, impossible=0.0, repeat=1):
    random = Random(seed)
    made = []
    for number in range(count):
        place, none = random.choice(PLACES), random.random() < impossible
        before = " ".join(f"{random.choice(WHO)} {random.choice(WHAT)}" for _ in range(random.randint(0, 2) * repeat))
        after = " ".join(f"{random.choice(WHAT)} {random.choice(DOES)}" for _ in range(random.randint(1, 2) * repeat))
        context = f"{before} {'' if none else place + ' '}{after}".strip()
        answers = () if none else (Answer(place, context.index(place)),)
        made.append(Question(f"q{number}", "어디에서 그랬나요?", context, answers, none, f"질문 {number}"))
    return made


def choices(count=256, seed=0):
    random = Random(seed)
    made = []
    for number in range(count):
        options = [f"{random.choice(BAD)} {random.choice(WHAT)}" for _ in range(random.randint(2, 4))]
        answer = random.randrange(len(options))
        options[answer] = f"{random.choice(GOOD)} {random.choice(WHAT)}"
        made.append(Choice(random.choice(WHO), tuple(options), answer, f"줄 {number}"))
    return made


def pairs(count=256, seed=0, scored=False):
    """Texts that name the same things."""
    random = Random(seed)
    made = []
    for number in range(count):
        same = not scored or random.random() < 0.5
        one = [random.choice(words) for words in (WHO, PLACES, WHAT)]
        other = one if same else [random.choice([w for w in words if w not in one]) for words in (WHO, PLACES, WHAT)]
        score = (5.0 if same else 0.0) if scored else None
        made.append(Scored(" ".join(one), " ".join([*other[::-1], random.choice(DOES)]), score, f"줄 {number}"))
    return made


def make_bundle(seed=0, **changes):
    from dataclasses import replace

    words = GOOD + BAD + WHO + PLACES + WHAT + DOES + ["거리에서", "어디에서", "그랬나요?"]
    texts = [" ".join(words)] * 200 + korean_documents(20)
    tokenizer = train_tokenizer(texts, kind="wordpiece", vocab_size=600)
    # Wide enough to begin with: such a small model would need long to find its way out of zero.
    return create_bundle(replace(SMALL, **{"initializer_range": 0.1, **changes}), tokenizer, seed=seed)


ALONE = World(0, 1, torch.device("cpu"))

# task, examples, figure, what it has to reach
TASKS = {
    "classify": (sentiment, "accuracy", 0.95),
    "several labels": (topics, "micro_f1", 0.9),
    "pair": (lambda **options: sentiment(pair=True, **options), "accuracy", 0.95),
    "regress": (scores, "spearman", 0.9),
    "tag": (tags, "f1", 0.95),
    "tag characters": (characters, "f1", 0.95),
    "answer": (questions, "exact_match", 0.9),
    "answer or not": (lambda **options: questions(impossible=0.3, **options), "exact_match", 0.9),
    "choose": (choices, "accuracy", 0.9),
    "embed": (lambda **options: pairs(scored=True, **options), "spearman", 0.7),
    "embed by contrast": (pairs, "mean_reciprocal_rank", 0.2),
}


def name_task(name):
    return "classify" if name == "several labels" else name.split()[0]


def prepare(name, *, count=192, bundle=None, told=None, model=None, **options):
    make, *_ = TASKS[name]
    options = {"epochs": 6, "batch_size": 16, "lr": 3e-3, "seed": 1, **options}
    return prepare_finetuning(
        TaskData(name_task(name), make(count=count), make(count=64, seed=9), name == "several labels"),
        bundle or make_bundle(**(model or {})),
        FinetuningOptions(**options),
        ALONE,
        model_name="toy",
        tell=(told if told is not None else []).append,
    )


def run(prepared, out):
    return list(finetune(prepared, out, ALONE, tell=print))
