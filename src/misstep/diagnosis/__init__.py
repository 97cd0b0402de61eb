"""Rules over a run or a flight record that say what is wrong, with evidence and the next command."""
