"""The places in MindSpore where misstep listens."""
