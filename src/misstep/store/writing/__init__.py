"""Writing a run directory while a training goes on."""
