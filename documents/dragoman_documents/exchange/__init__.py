"""Formats in which translators' programs exchange sources with their translations."""
