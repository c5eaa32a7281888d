"""The ``dragoman`` command, and the home of the Python SDK."""
