"""The CI job: a run without a person, and everything that a CI system keeps of it."""
