"""Commands for moving a model from one framework to the other."""
