"""The ``dragoman`` command."""
