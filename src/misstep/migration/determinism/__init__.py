"""Is a program deterministic, and if not, what is to blame: it is run twice, and what was recorded is compared.

torch_probe   inside the command: weights, inputs, operators, gradients and random states as digests
record        what a probe wrote
compare       two records: which stage is not fixed, and which source that points to
examine       the runs: twice as it is, once with other threads, twice with fixed hashes when they are suspected
"""
