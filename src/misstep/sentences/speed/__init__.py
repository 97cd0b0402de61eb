"""What is said of the speed and the memory of a training."""
