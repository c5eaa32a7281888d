"""Parallel text: where it comes from, and what of it is kept."""
