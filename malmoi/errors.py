"""The one exception a user's mistake raises: a sentence that names the place and says what to do."""


class MalmoiError(Exception):
    """Something the user can put right. The command line prints it as one sentence and exits with code 2."""
