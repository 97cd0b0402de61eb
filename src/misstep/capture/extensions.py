"""What the frameworks in use add to a session, and what of the session they may ask for (`SessionPort`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from misstep.adapters.base import Adapter, Extension, UncompiledRuns
from misstep.adapters.step.frame import Catalog, Frame
from misstep.core.finding import Finding
from misstep.core.levels import Level

if TYPE_CHECKING:
    from misstep.capture.session import Session


class Extensions:
    """Of one session, in the order in which frameworks were attached."""

    def __init__(self, session: Session) -> None:
        self._port = Port(session)
        self._added: list[Extension] = []

    def add(self, adapter: Adapter) -> None:
        self._added.append(adapter.extend(self._port))

    def run_began(self) -> None:
        self._port.write_early_findings()

    @property
    def modes(self) -> UncompiledRuns | None:
        return next((one.modes for one in self._added if one.modes is not None), None)

    def explain(self, error: BaseException) -> dict[str, Any]:
        """More facts about an exception of the user's program."""
        facts: dict[str, Any] = {}
        for one in self._added:
            if one.explain is not None:
                facts.update(one.explain(error))
        return facts


class Port:
    """A session as frameworks see it: `SessionPort` in adapters/base.py says what each of these means."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.settings = session.settings
        self.catalog: Catalog = session.catalog
        self.going_live = session.going_live
        self.trouble = session.trouble
        self._early: list[Finding] = []

    @property
    def frame(self) -> Frame:
        return self._session.frame

    @property
    def step(self) -> int:
        return self._session.step

    @property
    def wants(self) -> Mapping[int, Callable[[int, Any], None]]:
        return self._session.wants

    @property
    def rank(self) -> int:
        return self._session.rank

    @property
    def ended(self) -> bool:
        return self._session.ended

    @property
    def run_directory(self) -> Path | None:
        return self._session.run_directory

    @property
    def level(self) -> Level:
        return self._session.plan.level

    def level_for(self, step: int) -> Level:
        return self._session.plan.level_for(step)

    @property
    def walking(self) -> bool:
        controller = self._session.controller
        return controller is not None and controller.control.walks

    def event(self, kind: str, **facts: Any) -> None:
        if self._session.writer is not None:
            self._session.writer.event(kind, **facts)

    def report(self, finding: Finding) -> None:
        if self._session.writer is None:
            self._early.append(finding)
        else:
            self._session.writer.finding(finding)

    def note(self, level: Literal["info", "warning"], text: str) -> None:
        if self._session.controller is not None:
            self._session.controller.note(level, text)

    def write_early_findings(self) -> None:
        """A run may begin long after an option was set that MindSpore remarks on."""
        while self._early:
            self.report(self._early.pop(0))
