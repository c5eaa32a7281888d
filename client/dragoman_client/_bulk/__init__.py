"""``translate_many``: any number of texts through one stream to each server, results in order."""
