"""How each row goes on: greedy, beam, sampled, constrained, within a shortlist."""
