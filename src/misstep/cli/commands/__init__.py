"""The commands of `misstep`, one file each."""
