"""Orchestrix: a plan becomes merged, verified commits."""

__version__ = "0.1.0"
