"""For tests of misstep and of adapters that others write: the contract, a small framework, and its adapter.

>>> from misstep.testing import AdapterContract
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from misstep.adapters.registry import Framework, register

if TYPE_CHECKING:
    from misstep.testing.contract import AdapterContract, Kind, Training
    from misstep.testing.contract.replay import ReplayContract

FAKE = Framework(
    "fake",
    "misstep.testing.fake_framework",
    "misstep.testing.fake:FakeAdapter",
    lambda fake, thing: isinstance(thing, fake.FakeModel | fake.FakeTensor),
)
register(FAKE)

_CONTRACT = {"AdapterContract": "", "Kind": "", "Training": "", "ReplayContract": ".replay"}


def __getattr__(name: str) -> Any:
    """The contract needs pytest, the fake framework does not."""
    if name not in _CONTRACT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"misstep.testing.contract{_CONTRACT[name]}"), name)


__all__ = ["FAKE", "AdapterContract", "Kind", "ReplayContract", "Training"]
