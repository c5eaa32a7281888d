"""``dragoman translate`` of documents: files in, files beside them out."""
