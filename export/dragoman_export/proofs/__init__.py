"""Proofs that a bundle computes what its model does."""
