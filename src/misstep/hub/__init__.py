"""The hub: one server for browsers, terminals and trainees (see hub.py). `start_hub` runs it beside anything else."""

from misstep.hub.server import RunningHub, start_hub

__all__ = ["RunningHub", "start_hub"]
