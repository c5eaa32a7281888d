"""Bundles: directories that hold a model to serve, checked before they are used."""
