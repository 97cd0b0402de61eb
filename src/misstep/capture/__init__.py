"""What runs inside the trained process."""
