"""Steps of compiled MindSpore code, run in PyNative too: asked for while training runs, and what came of it told.

pynative 3:5 ──► ask ──► the adapter runs those steps in both modes ──► tell ──► journal, finding, debugger
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from misstep.capture.plan import parse_steps
from misstep.core.finding import Finding
from misstep.errors import ControlError, SettingError

if TYPE_CHECKING:
    from misstep.capture.session import Session


class BothModes:
    """Of one session that trains with MindSpore."""

    def __init__(self, session: Session, adapter: Any) -> None:
        self._session, self._adapter = session, adapter
        adapter.eager_steps = parse_steps(session.settings.pynative) or []
        adapter.on_modes = self.tell
        adapter.walks = lambda: session.controller is not None and session.controller.control.walks

    @property
    def compiled(self) -> bool:
        """Whether the steps of this training are compiled code."""
        return bool(self._adapter.steps_compiled)

    def check(self, *, inside: int | None) -> None:
        """Raise ControlError when the next step cannot be run in PyNative; `inside`: the step under way, if any."""
        if not self.compiled:
            raise ControlError(
                "this run trains in PyNative already, nothing of its steps is compiled: n walks from node to node",
                code="unsupported",
            )
        if inside is not None and self._adapter.instead_of_updates is not None:
            raise ControlError(
                f"step {inside} is being run in PyNative now: n and to walk through it", code="bad_request"
            )
        if inside is not None:
            raise ControlError(
                f"step {inside} is under way: s ends it, then pynative runs the next", code="bad_request"
            )

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
            raise ControlError(
                f"step {steps} is over, {done} have ended; name steps to come, like pynative {done + 1}:{done + 3}",
                code="bad_request",
            )
        self._adapter.eager_steps.extend(coming)
        said = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in coming)
        return f"these steps will be run in PyNative too: {said.replace(str(2**31), 'the end')}"

    def tell(self, modes: Any) -> None:
        """How a step came out in the two modes."""
        session = self._session
        how = "was run in PyNative too" if modes.agree is not None else "could not be run in PyNative"
        text = f"step {modes.step} {how}: {modes.text}"
        if session.controller is not None:
            session.controller.note("warning" if modes.agree is not True else "info", text)
        if session.writer is None:
            return
        session.writer.event("modes", text=text, step=modes.step, agree=modes.agree)
        if modes.agree is False:
            session.writer.finding(self._finding(modes))

    def _finding(self, modes: Any) -> Finding:
        step, outputs = modes.step, modes.outputs
        cause = "code that depends on Python state, a fused operator, or a random number; "
        if outputs.count:
            advice = "look at the first output or gradient that differs, and train in PyNative mode meanwhile"
        else:
            advice = "train in PyNative mode meanwhile; run the command to learn which operator differs first"
        evidence = [f"{outputs.compiled}:output@{step}"] if outputs.node else []
        evidence += [f"{name}:grad@{step}" for name in modes.differing[:8]]
        run = self._session.run_directory
        look = f"misstep show {run.name if run else 'last'} '{evidence[0]}'" if evidence else ""
        return Finding(
            rule="mindspore.modes_differ",
            title=f"graph mode and PyNative give different results: {modes.text.removeprefix('the modes differ: ')}",
            step=step,
            rank=self._session.rank,
            evidence=tuple(evidence),
            advice=cause + advice,
            command=look if outputs.count else f"MISSTEP_PYNATIVE={step} misstep run --level op --steps {step} …",
        )
