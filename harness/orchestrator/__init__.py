"""THINK: from a goal to a finished run."""
