"""A parent supervisor that calls one subgraph, reads its answer and stops."""
