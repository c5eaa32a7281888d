"""Office files and books: zip files with XML in them."""
