"""The flight recorder: what is known when a training dies or hangs."""
