"""Tensors that other tools wrote, read as what they are: a named, ordered collection."""
