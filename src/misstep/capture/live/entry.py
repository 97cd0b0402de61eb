"""Where the live debugger comes in: at the start when the settings name a hub, or later, when one has left its card.

Its message types cost more to load than everything else in the trainee together, so nothing of it is imported before
somebody asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from misstep.core.levels import Level
from misstep.core.run import HUB_FILE

if TYPE_CHECKING:
    from misstep.capture.live.controller import Controller
    from misstep.capture.session import Session

_LOOK_SECONDS = 1.0


class LiveEntry:
    """Of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.controller: Controller | None = None
        self._world_size = 1
        self._command: tuple[str, ...] = ()
        self.next_look = 0.0

    def going_live(self, *, world_size: int, command: tuple[str, ...]) -> None:
        """Training begins: let in whom the settings announce."""
        self._world_size, self._command = world_size, command
        session = self._session
        pausing = any(watch.then == "pause" for watch in session.watchpoints)
        if session.settings.hub or session.settings.pause_at_start or pausing:
            self.open()

    def open(self) -> None:
        if self.controller is not None:
            return
        from misstep.capture.live.controller import Controller

        session = self._session
        self.controller = Controller(session.settings, session, world_size=self._world_size)
        self.controller.on_wants_nodes = self._walk
        self.controller.attach_link(command=self._command)

    def first_pause(self) -> None:
        """Before the first step, where the settings say so."""
        if self.controller is not None and self._session.step == 1:
            self.controller.initial_pause()

    def look(self, now: float) -> None:
        """At most once a second: has somebody written the address of a hub into the run directory?"""
        writer = self._session.writer
        if self.controller is None and now >= self.next_look and writer is not None:
            self.next_look = now + _LOOK_SECONDS
            if (writer.directory / HUB_FILE).exists():
                self.open()

    def level(self) -> Level:
        """How closely to look for whoever walks from node to node."""
        if not self._session.stepping or self.controller is None:
            return "off"
        return "op" if self.controller.control.granularity == "operator" else "module"

    def _walk(self, wanted: bool) -> None:
        self._session.stepping = wanted
