"""What stops an export; each message is one line for the user."""


class ExportError(Exception):
    exit_code = 2


class VerificationError(ExportError):
    """The graphs do not compute what the model does. Names the output and the difference."""

    exit_code = 1
