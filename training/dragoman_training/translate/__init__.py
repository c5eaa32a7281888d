"""Translating with a trained model: search, evaluation, alignment."""
