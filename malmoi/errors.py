"""What a user hears: a mistake is a sentence that names the place and says what to do, and a guess is said aloud."""


class MalmoiError(Exception):
    """Something the user can put right. The command line prints it as one sentence and exits with code 2."""


class Notice(UserWarning):
    """A guess that the user should hear of. The command line prints it as one sentence; the work goes on."""
