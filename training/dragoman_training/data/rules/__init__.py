"""What is made of sentence pairs by rule: variants, placeholders, words, filters."""
