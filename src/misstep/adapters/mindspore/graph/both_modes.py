"""Steps of compiled MindSpore code, run in PyNative too: asked for while training runs, and what came of it told.

pynative 3:5 ──► ask ──► the adapter runs those steps in both modes ──► tell ──► journal, finding, debugger
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from misstep.adapters.base import SessionPort
from misstep.core.finding import Finding
from misstep.core.steps import parse_steps
from misstep.errors import ControlError, SettingError
from misstep.sentences import control, findings, journal

if TYPE_CHECKING:
    from misstep.adapters.mindspore.adapter import MindSporeAdapter
    from misstep.adapters.mindspore.graph.compare_modes import Modes


class BothModes:
    """Of one session that trains with MindSpore."""

    def __init__(self, session: SessionPort, adapter: MindSporeAdapter) -> None:
        self._session, self._adapter = session, adapter
        self._steps = adapter.eager_steps = parse_steps(session.settings.pynative) or []
        adapter.on_modes = self.tell
        adapter.walks = lambda: session.walking

    @property
    def compiled(self) -> bool:
        """Whether the steps of this training are compiled code."""
        return self._adapter.steps_compiled

    def check(self, *, inside: int | None) -> None:
        """Raise ControlError when the next step cannot be run in PyNative; `inside`: the step under way, if any."""
        if not self.compiled:
            raise ControlError(control.PYNATIVE_ALREADY.of(), code="unsupported")
        if inside is not None and self._adapter.instead_of_updates is not None:
            raise ControlError(control.IN_PYNATIVE_NOW.of(step=inside), code="bad_request")
        if inside is not None:
            raise ControlError(control.UNDER_WAY.of(step=inside), code="bad_request")

    def ask(self, steps: str, *, done: int) -> str:
        """Have these steps run in both modes when they come; `done` is the last one that ended."""
        if not self.compiled:
            self.check(inside=None)
        try:
            asked = parse_steps(steps) or []
        except SettingError as error:
            raise ControlError(str(error), code="bad_request") from None
        coming = [(max(first, done + 1), last) for first, last in asked if last > done and last >= first]
        if not coming:
            over = control.STEP_IS_OVER.of(steps=steps, done=done, first=done + 1, last=done + 3)
            raise ControlError(over, code="bad_request")
        self._steps.extend(coming)
        ranges = [
            str(first)
            if first == last
            else journal.STEP_RANGE.of(first=first, last=journal.THE_END if last >= 2**31 else last)
            for first, last in coming
        ]
        return journal.WILL_RUN_IN_PYNATIVE.of(steps=ranges)

    def tell(self, modes: Modes) -> None:
        """How a step came out in the two modes."""
        session = self._session
        if modes.agree is None:
            text = journal.NOT_IN_PYNATIVE.of(step=modes.step, why=modes.text)
        else:
            text = journal.RAN_IN_PYNATIVE.of(step=modes.step, found=modes.text)
        session.note("warning" if modes.agree is not True else "info", text)
        session.event("modes", text=text, step=modes.step, agree=modes.agree)
        if modes.agree is False:
            session.report(self._finding(modes))

    def _finding(self, modes: Modes) -> Finding:
        step, outputs = modes.step, modes.outputs
        evidence = [f"{outputs.compiled}:output@{step}"] if outputs.node else []
        evidence += [f"{name}:grad@{step}" for name in modes.differing[:8]]
        run = self._session.run_directory
        look = f"misstep show {run.name if run else 'last'} '{evidence[0]}'" if evidence else ""
        return Finding(
            rule="mindspore.modes_differ",
            title=findings.MODES_DIFFER.of(where=modes.where),
            step=step,
            rank=self._session.rank,
            evidence=tuple(evidence),
            advice=findings.LOOK_AT_FIRST.of() if outputs.count else findings.RUN_THE_COMMAND.of(),
            command=look if outputs.count else f"MISSTEP_PYNATIVE={step} misstep run --level op --steps {step} …",
        )
