"""Bridges to Hugging Face: directories of MarianMT and M2M-100 in, and our checkpoints out."""
