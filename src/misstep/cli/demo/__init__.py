"""A small training to look around with: what `misstep ui --demo` runs, and how."""
