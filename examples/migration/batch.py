"""One batch for both networks."""

import numpy as np

draw = np.random.default_rng(0)
np.savez("batch.npz", x=draw.standard_normal((4, 3, 8, 8)).astype("float32"), label=draw.integers(0, 5, 4))
