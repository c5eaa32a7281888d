"""The models: the Transformer, and the recurrent ones that it replaced."""
