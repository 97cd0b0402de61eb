"""One contract, run over every adapter."""
