"""For people and scripts: one file for each command, data on stdout, progress on stderr."""
