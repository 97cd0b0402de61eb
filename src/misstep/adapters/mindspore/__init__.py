"""MindSpore, watched: eager code by its seams, compiled code by its dumps."""
