"""The engine: many translations at once, each as if it were alone."""
