"""From a text to the sentences that a model translates, and back to a text."""
