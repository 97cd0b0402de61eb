"""Runs and dumps that MindSpore's own tools wrote."""
