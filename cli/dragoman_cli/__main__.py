"""``python -m dragoman_cli`` is the ``dragoman`` command."""

from dragoman_cli.main import main

main()
