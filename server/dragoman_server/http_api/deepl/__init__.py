"""DeepL's API, version 2, as its clients know it."""
