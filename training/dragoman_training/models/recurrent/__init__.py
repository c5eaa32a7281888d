"""Encoder-decoders of gated recurrent units."""
