"""Code that torch.compile made: whose calls are heard, whose steps are run a second time uncompiled, and where its
lines come from."""
