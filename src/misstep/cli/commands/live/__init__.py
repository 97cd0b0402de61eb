"""Commands that talk to a running training."""
