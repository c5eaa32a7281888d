"""Models of Marian, Bergamot and Firefox, read without Marian."""
