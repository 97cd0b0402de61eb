"""Data pipelines: what one delivers, and whether two deliver the same."""
