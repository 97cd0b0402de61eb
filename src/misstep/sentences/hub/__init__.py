"""What the hub itself says: of its list of runs, and in the report of one."""
