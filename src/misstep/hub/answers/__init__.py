"""What the hub answers about recorded runs, dumps and comparisons."""
