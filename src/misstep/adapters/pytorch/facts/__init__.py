"""Facts of a PyTorch program for `misstep diagnose`: who is called, who holds what, how the loss was made."""
