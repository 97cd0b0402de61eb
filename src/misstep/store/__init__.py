"""The run directory: what the training process appends to and every reader reads (docs/format.md, byte by byte)."""
