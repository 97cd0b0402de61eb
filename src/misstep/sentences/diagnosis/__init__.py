"""What `misstep diagnose` says: one file per family of rules, and the words around them."""
