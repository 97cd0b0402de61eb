"""Trainings that are connected to the hub right now."""
