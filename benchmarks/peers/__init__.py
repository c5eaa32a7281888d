"""Engines that are compared: calls, models and servers of each, with the same weights."""
