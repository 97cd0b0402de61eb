"""What a crash or a run that does not learn most likely means."""
