"""What can be done with runs, for every surface alike: start, resume, retry, cancel, land, clean, restore."""
