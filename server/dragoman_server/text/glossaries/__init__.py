"""Glossaries: terms that a client wants to be translated in its own way."""
