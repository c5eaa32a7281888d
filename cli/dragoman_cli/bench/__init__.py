"""``dragoman bench``: load on a server, and how long people wait."""
