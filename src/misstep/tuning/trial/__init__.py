"""One trial: a command under misstep, followed while it runs."""
