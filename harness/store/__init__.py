"""Remember: the append-only log and its projections."""
