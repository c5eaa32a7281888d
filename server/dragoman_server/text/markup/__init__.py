"""Markup: taken out of a text before it is translated, and put back around the same words."""
