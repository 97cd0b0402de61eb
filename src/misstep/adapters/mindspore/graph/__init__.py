"""MindSpore's compiled code: where it begins and ends, what it is made of, and what it dumped."""
