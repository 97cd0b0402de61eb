"""What the replays of all frameworks share."""
