"""XML and HTML as spans of their source."""
