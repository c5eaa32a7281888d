"""What a person sees of a run: records, terminal, logs, plots."""
