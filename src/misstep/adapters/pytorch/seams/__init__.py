"""The places in PyTorch where misstep listens."""
