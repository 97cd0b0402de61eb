"""A run, or the record of a crash, as one file."""
