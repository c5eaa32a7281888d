"""What stops an export; each message is one line for the user."""


class ExportError(Exception):
    """What was given can't be exported, imported or distilled."""

    exit_code = 2


class VerificationError(ExportError):
    """The graphs do not compute what the model does. Names the output and the difference."""

    exit_code = 1
