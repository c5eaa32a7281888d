"""Recipes: all that defines a training run, read and checked."""
