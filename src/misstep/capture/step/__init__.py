"""From a finished step to its verdict and its record."""
