"""What importers of models from elsewhere share."""
