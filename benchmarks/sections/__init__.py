"""Sections of the page of results, each from the JSON of one benchmark."""
