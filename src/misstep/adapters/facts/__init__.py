"""What the fact collectors of all frameworks share: when to look, and how a batch is told from another."""
