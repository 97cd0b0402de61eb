"""A step of MindSpore run again, bit for bit."""
