"""What can be wrong with a document."""


class DocumentError(Exception):
    """A document that can't be read or written; its message is one line for whoever gave it."""

    exit_code = 1
    """Exit code of a command that ends with it."""
