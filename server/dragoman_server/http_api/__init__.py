"""HTTP: our JSON API, those of LibreTranslate and DeepL, the page, and the documentation."""
