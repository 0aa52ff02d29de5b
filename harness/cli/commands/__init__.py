"""One file for each command; each has `register(app)`."""
