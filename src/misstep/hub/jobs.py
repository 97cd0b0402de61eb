"""Work that takes long, beside the event loop: asked for once, looked at while it runs, cancelled at any moment.

The same question asked again (another tab, a reload) finds the job that answers it already. The oldest answers are
forgotten; whoever holds the link of one asks anew.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from misstep.errors import ControlError, MisstepError
from misstep.protocol.things import JobState, JobView

AT_ONCE = 2
KEPT = 16

Progress = Callable[[int, int], None]


class _Cancelled(Exception):
    """Nobody waits for the answer any more."""


class Job:
    """One question and its answer."""

    def __init__(self, id: str, kind: str) -> None:
        self.id, self.kind = id, kind
        self.state: JobState = "waiting"
        self.done = self.total = 0
        self.text = ""
        self.result: Any = None
        self.began = time.monotonic()
        self.seconds = 0.0
        self.ended = threading.Event()
        self._stop = threading.Event()

    def view(self) -> JobView:
        over = self.state in ("done", "failed", "cancelled")
        seconds = self.seconds if over else time.monotonic() - self.began
        return JobView(self.id, self.state, self.done, self.total, seconds, self.text)

    def progress(self, done: int, total: int) -> None:
        """Told by the work; ends it when it was cancelled."""
        if self._stop.is_set():
            raise _Cancelled
        self.done, self.total = max(self.done, done), total

    def cancel(self) -> None:
        self._stop.set()

    def run(self, work: Callable[[Progress], Any], slots: threading.Semaphore) -> None:
        try:
            while not slots.acquire(timeout=0.05):
                self.progress(0, 0)
            try:
                self.progress(0, 0)
                self.state = "running"
                self.result = work(self.progress)
                self.progress(self.total, self.total)
                self._end("done")
            finally:
                slots.release()
        except _Cancelled:
            self._end("cancelled")
        except MisstepError as error:
            self._end("failed", str(error))
        except Exception as error:
            self._end("failed", f"{type(error).__name__}: {error}")

    def _end(self, state: JobState, text: str = "") -> None:
        # The state last: whoever sees it may rely on the rest.
        self.seconds, self.text = time.monotonic() - self.began, text
        self.state = state
        self.ended.set()


class Jobs:
    """The jobs of one hub."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._slots = threading.Semaphore(AT_ONCE)
        self._lock = threading.Lock()

    def start(self, kind: str, question: object, work: Callable[[Progress], Any]) -> Job:
        """The job that answers this question: one that runs or is done, else a new one."""
        id = hashlib.blake2b(repr((kind, question)).encode(), digest_size=8).hexdigest()
        with self._lock:
            known = self._jobs.get(id)
            if known is not None and known.state in ("waiting", "running", "done") and not known._stop.is_set():
                self._jobs.move_to_end(id)
                return known
            job = self._jobs[id] = Job(id, kind)
            self._jobs.move_to_end(id)
            while len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)[1].cancel()
        threading.Thread(target=job.run, args=(work, self._slots), name=f"misstep-{kind}", daemon=True).start()
        return job

    def get(self, id: str, kind: str = "") -> Job:
        with self._lock:
            job = self._jobs.get(id)
        if job is None or (kind and job.kind != kind):
            raise ControlError(f"no {kind or 'job'} {id[:20]!r} is kept here; ask for it again", code="not_found")
        return job

    def answer(self, id: str, kind: str) -> Any:
        """What a job found; an error while it has not."""
        job = self.get(id, kind)
        if job.state == "failed":
            raise ControlError(job.text, code="failed")
        if job.state != "done":
            raise ControlError(f"the {kind} is not done ({job.state})", code="not_done")
        return job.result
