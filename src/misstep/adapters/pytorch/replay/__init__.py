"""A step of PyTorch run again, bit for bit."""
