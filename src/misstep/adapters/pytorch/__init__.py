"""PyTorch, watched."""
