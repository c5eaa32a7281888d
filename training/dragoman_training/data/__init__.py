"""From parallel text to batches of tokens."""
