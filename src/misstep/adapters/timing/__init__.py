"""Where the time of a step goes: the clock adapters turn, and what data loaders tell of their batches."""
