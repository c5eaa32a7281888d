"""What a running server tells of itself: its log, its metrics, and where they are read."""
