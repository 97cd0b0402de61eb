"""Reading a run directory, whole or cut off."""
