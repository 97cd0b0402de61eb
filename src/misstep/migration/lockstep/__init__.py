"""Two networks on the same values, layer by layer, every layer of the right fed with the left's own inputs."""
