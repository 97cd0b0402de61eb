"""Dumps, checkpoints and comparisons: what lies in the folder besides runs, and what is asked of it."""
