"""Functions and methods: what both packages offer, which might be which, and both executed on the same values."""
