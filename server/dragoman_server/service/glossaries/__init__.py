"""Glossaries that the server keeps for its clients."""
