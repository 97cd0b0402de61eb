"""Tensors that are kept: for watchpoints, verdicts and dumps."""
