"""The training loop, and what it needs: loss, optimizers, checkpoints."""
