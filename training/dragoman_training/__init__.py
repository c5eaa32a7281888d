"""Training of encoder-decoder Transformers on parallel text."""
