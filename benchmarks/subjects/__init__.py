"""Models that benchmarks run, and the texts that they translate."""
