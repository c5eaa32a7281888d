"""Formats that are text files: prose, subtitles, catalogues of strings, tables."""
