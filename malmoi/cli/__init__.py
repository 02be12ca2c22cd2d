"""The command line: parse, call, print. What a command does lives in the part of malmoi it is about."""

import os
import sys
import warnings
from typing import TextIO

from cyclopts import App, CycloptsError

from malmoi import __version__
from malmoi.errors import MalmoiError, Notice
from malmoi.ranks import is_first_rank, let_first_rank_speak

app = App(
    name="malmoi",
    help="Pre-train, fine-tune and use the BERT family on your own text.",
    version=__version__,
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,  # else it would end the process without a word
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
    warnings.showwarning = _show_warning
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
    except MemoryError:
        _fail("there is not enough memory for this; ask for less at once, such as a smaller --batch-size.")
    except OSError as mistake:
        where = f"{mistake.filename}: " if mistake.filename else ""
        _fail(f"{where}{mistake.strerror or mistake}")
    except KeyboardInterrupt as stop:
        # Whoever keeps something has noted on its way out what that is, and how to go on.
        kept = getattr(stop, "__notes__", None) or ["nothing new was kept; run the same command again"]
        if is_first_rank():
            print(f"malmoi: interrupted: {kept[0]}.", file=sys.stderr)
        raise SystemExit(130) from None


_show_python_warning = warnings.showwarning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, Notice):
        if is_first_rank():
            print(f"malmoi: {message}", file=sys.stderr, flush=True)
    else:
        _show_python_warning(message, category, filename, lineno, file, line)


def _name_pipes(words: list[str]) -> list[str]:
    """ "-" is how people name standard input, and standard output after -o; the parser would take it for an option."""
    outputs = ("-o", "--out")
    named = [
        word if word != "-" else "/dev/stdout" if before in outputs else "/dev/stdin"
        for before, word in zip(["", *words], words, strict=False)
    ]
    return ["--out=/dev/stdout" if word in ("-o=-", "--out=-") else word for word in named]


def _fail(sentence: str) -> None:
    let_first_rank_speak()
    print(f"malmoi: {sentence}", file=sys.stderr)
    raise SystemExit(2)
