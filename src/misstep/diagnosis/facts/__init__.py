"""What the rules look at: the facts one rank has written, put together with the losses of its steps."""

from misstep.diagnosis.facts.facts import Facts, facts_of, read_rank

__all__ = ["Facts", "facts_of", "read_rank"]
