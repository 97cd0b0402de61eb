"""How far two tensors are apart, how far rounding takes them, and which difference led to which."""
