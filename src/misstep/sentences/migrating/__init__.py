"""Sentences about moving a network: calls and files written anew, runs that are not the same twice, loss curves."""
