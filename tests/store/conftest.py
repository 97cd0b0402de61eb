"""Lets the folders below import small_run."""
