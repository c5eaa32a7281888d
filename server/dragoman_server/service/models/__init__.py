"""The models of a server: loaded, chosen by name or languages, and told which are wanted."""
