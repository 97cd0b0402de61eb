"""`advise`, `memory`, `profile`: what makes a training faster or smaller."""
