"""The command line: parse, call, print. What a command does lives in the part of malmoi it is about."""

import os
import sys

from cyclopts import App, CycloptsError

from malmoi import __version__
from malmoi.errors import MalmoiError

app = App(
    name="malmoi",
    help="Pre-train, fine-tune and use the BERT family on your own text.",
    version=__version__,
    version_flags=["--version"],
)
tokenizer_app = App(name="tokenizer", help="Train, extend and examine tokenizers.")
app.command(tokenizer_app)

# Each command is a module of its own and is imported only when it is asked for.
tokenizer_app.command("malmoi.cli.tokenizer:train", name="train")
tokenizer_app.command("malmoi.cli.tokenizer:extend", name="extend")
tokenizer_app.command("malmoi.cli.tokenizer:report", name="report")
app.command("malmoi.cli.demo:demo", name="demo")
app.command("malmoi.cli.check:app", name="check")
app.command("malmoi.cli.prepare:prepare", name="prepare")
app.command("malmoi.cli.inspect:inspect", name="inspect")
app.command("malmoi.cli.pretrain:pretrain", name="pretrain")
app.command("malmoi.cli.embed:embed", name="embed")
app.command("malmoi.cli.finetune:finetune", name="finetune")
app.command("malmoi.cli.evaluate:evaluate", name="evaluate")
app.command("malmoi.cli.predict:predict", name="predict")
app.command("malmoi.cli.fill:fill", name="fill")
app.command("malmoi.cli.info:info", name="info")
app.command("malmoi.cli.convert:convert", name="convert")


def main() -> None:
    """Run the command line. A user's mistake is one sentence on standard error and exit code 2."""
    words = _name_pipes(sys.argv[1:])
    try:
        app(words, exit_on_error=False, print_error=False)
    except CycloptsError as mistake:
        _fail(str(mistake).strip())
    except MalmoiError as mistake:
        _fail(str(mistake))
    except BrokenPipeError:
        # The reader of our output (head, less) has gone; that is its right.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as mistake:
        where = f"{mistake.filename}: " if mistake.filename else ""
        _fail(f"{where}{mistake.strerror or mistake}")
    except KeyboardInterrupt:
        print("malmoi: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _name_pipes(words: list[str]) -> list[str]:
    """ "-" is how people name standard input, and standard output after -o; the parser would take it for an option."""
    outputs = ("-o", "--out")
    named = [
        word if word != "-" else "/dev/stdout" if before in outputs else "/dev/stdin"
        for before, word in zip(["", *words], words, strict=False)
    ]
    return ["--out=/dev/stdout" if word in ("-o=-", "--out=-") else word for word in named]


def _fail(sentence: str) -> None:
    print(f"malmoi: {sentence}", file=sys.stderr)
    raise SystemExit(2)
