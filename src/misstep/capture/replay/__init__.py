"""When a bad step is run again, and what comes of it."""
