"""The subcommands of ``dragoman`` that come with this package."""
