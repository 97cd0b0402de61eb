"""Watchpoints: conditions, expressions, and how they are evaluated."""
