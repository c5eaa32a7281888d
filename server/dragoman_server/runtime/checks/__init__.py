"""What is checked before graphs are trusted, and of what they are given."""
