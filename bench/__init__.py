"""Measurements: the harness against the plain tools that do the same."""
