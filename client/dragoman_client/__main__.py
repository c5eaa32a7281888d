"""``python -m dragoman_client`` is the ``dragoman`` command."""

from dragoman_client.cli import main

main()
