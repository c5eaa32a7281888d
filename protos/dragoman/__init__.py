"""The wire contract's generated modules; ``make protos`` writes them."""
