"""The debugger's prompt: a line in, a few lines out. Everything it does, `misstep.connect(run)` does too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from misstep.client import Debugger, events_of
from misstep.core.watching.conditions import CONDITIONS
from misstep.errors import MisstepError, nearest
from misstep.protocol import messages as m
from misstep.protocol.payloads import NodeInfo
from misstep.protocol.tensor_payloads import TensorHeader
from misstep.protocol.views import HitView, StatsView, as_float
from misstep.sentences.cli import live as words
from misstep.sentences.text import said
from misstep.sentences.words import spoken

_SLICED = re.compile(r"(?P<address>[^\[]+)(?P<slice>\[.*\])?")
_MOVES = ("c", "s", "n", "to", "until")
_LOOKS = ("p", "print", "stats", "nan", "hist", "diff", "node")


class Prompt:
    """Carries typed commands out on a debugger and says what came of it."""

    def __init__(self, debugger: Debugger, say: Callable[[str], None]) -> None:
        self.debugger = debugger
        self.say = say
        self.last = ""
        """The address looked at last, for `diff prev`."""
        self.left = False
        self._names: list[str] = []
        self._told_hits = 0
        self._told_note = 0
        self._verbs: dict[str, Callable[[str], None]] = {
            "c": lambda rest: self._move(debugger.go, wait=False),
            "continue": lambda rest: self._move(debugger.go, wait=False),
            "pause": lambda rest: self._move(debugger.pause),
            "s": lambda rest: self._move(lambda: debugger.step(int(rest or 1))),
            "step": lambda rest: self._move(lambda: debugger.step(int(rest or 1))),
            "n": lambda rest: self._move(debugger.next),
            "next": lambda rest: self._move(debugger.next),
            "to": lambda rest: self._move(lambda: debugger.run_to(rest)),
            "until": lambda rest: self._move(lambda: debugger.until(rest)),
            "pynative": self._pynative,
            "wait": lambda rest: self._wait(),
            "p": self._print,
            "print": self._print,
            "stats": self._stats,
            "nan": self._nan,
            "hist": self._hist,
            "diff": self._diff,
            "watch": self._watch,
            "try": self._try,
            "watches": lambda rest: self._watches(),
            "unwatch": lambda rest: self._done(debugger.unwatch(int(rest))),
            "on": lambda rest: self._done(debugger.enable(int(rest))),
            "off": lambda rest: self._done(debugger.enable(int(rest), False)),
            "recommend": lambda rest: self._done(debugger.recommend()),
            "recheck": lambda rest: self._recheck(),
            "hits": lambda rest: self._hits(),
            "where": lambda rest: self.say(where(debugger.state)),
            "find": self._find,
            "node": self._node,
            "ops": lambda rest: self._done(debugger.granularity("operator")),
            "modules": lambda rest: self._done(debugger.granularity("module")),
            "stop": lambda rest: self._done(debugger.stop()),
            "detach": lambda rest: self._done(debugger.detach()),
            "help": lambda rest: self.say(words.PROMPT_HELP()),
            "q": lambda rest: self._leave(),
            "quit": lambda rest: self._leave(),
        }

    def do(self, line: str) -> bool:
        """Carry one line out; False when it could not be done. What went wrong is said, never raised."""
        word, _, rest = line.strip().partition(" ")
        if not word:
            return True
        verb = self._verbs.get(word)
        if verb is None:
            self.say(words.UNKNOWN(word=word, nearest=nearest(word, self._verbs)))
            return False
        try:
            verb(rest.strip())
            return True
        except MisstepError as error:
            self.say(said(str(error)))
            if word in _LOOKS and self.debugger.state.compiled:
                self.say(words.COMPILED())
        except ValueError as error:
            self.say(f"{word}: {error}")
        return False

    def complete(self, text: str, line: str) -> list[str]:
        """What the word being typed could become."""
        first = line.lstrip()
        if " " not in first:
            return sorted(verb for verb in self._verbs if verb.startswith(text))
        verb = first.split(" ", 1)[0]
        if verb in ("watch", "try"):
            return sorted(name for name in (*CONDITIONS, *self._nodes()) if name.startswith(text))
        return [name for name in self._nodes() if name.startswith(text)]

    def _nodes(self) -> list[str]:
        if not self._names:
            try:
                self._names = [node.name for node in self.debugger.search("", limit=5000).nodes]
            except MisstepError:
                return []
        return self._names

    def _move(self, command: Callable[[], Any], *, wait: bool = True) -> None:
        command()
        if wait:
            self._wait()
        else:
            self.say(where(self.debugger.state))

    def _wait(self) -> None:
        state = self.debugger.wait("paused", "ended", "lost", "detached", seconds=24 * 3600.0)
        self._new_notes()
        self.say(where(state))
        self._new_hits()

    def _pynative(self, rest: str) -> None:
        if rest:
            self._done(self.debugger.pynative(rest))
        else:
            self._move(self.debugger.pynative)

    def _new_notes(self) -> None:
        """What the training had to say meanwhile."""
        for note in list(events_of(self.debugger, m.LogLine)):
            if note.run == self.debugger.run and note.seq > self._told_note:
                self._told_note = note.seq
                self.say(f"  {said(spoken(note.text, note.text_zh))}")

    def _new_hits(self) -> None:
        news = self.debugger.hits[self._told_hits :]
        self._told_hits = len(self.debugger.hits)
        for hit in news[:10]:
            self.say(hit_line(hit))

    def _print(self, rest: str) -> None:
        address, cut = self._address(rest)
        values = self.debugger.tensor(address, cut)
        self.say(f"{address}{cut} {values.dtype} {list(values.shape)}")
        with np.printoptions(precision=5, threshold=200, edgeitems=4, linewidth=110):
            self.say(str(values))

    def _stats(self, rest: str) -> None:
        address, cut = self._address(rest)
        header = self.debugger.look(address, cut, ("stats",))
        if header.stats is not None:
            self.say(f"{header.address} {stats_line(header.stats)}")

    def _nan(self, rest: str) -> None:
        address, cut = self._address(rest)
        header: TensorHeader = self.debugger.look(address, cut, ("find:next:-1",))
        found = header.found
        if found is None or found.index is None:
            self.say(f"{header.address}: every element is finite")
        else:
            self.say(f"{header.address}[{', '.join(map(str, found.index))}] = {found.value}")

    def _hist(self, rest: str) -> None:
        address, cut = self._address(rest)
        histogram = self.debugger.look(address, cut, ("hist:16",)).histogram
        if histogram is None:
            return
        most = max(histogram.counts, default=0) or 1
        for low, high, count in zip(histogram.edges, histogram.edges[1:], histogram.counts):
            self.say(f"{low:>12.4g} … {high:<12.4g} {'█' * round(40 * count / most):40} {count:,}")
        for name, count in (("NaN", histogram.nan), ("+Inf", histogram.pos_inf), ("-Inf", histogram.neg_inf)):
            if count:
                self.say(f"{name:>12} {count:,}")

    def _diff(self, rest: str) -> None:
        given = rest.split()
        if given[:1] in (["prev"], ["previous"]) or not given:
            a, b = (given[1] if len(given) > 1 else self.last), "prev"
        else:
            a, b = given[0], given[1] if len(given) > 1 else "prev"
        if not a:
            raise ValueError("name a tensor, like: diff prev encoder.0.weight:param")
        address, cut = self._address(a)
        found = self.debugger.compare(address, b, slice=cut)
        one = found.differences
        self.say(f"{found.a}  against  {found.b}")
        self.say(
            f"  max |Δ| {_short(one.max_absolute)} at {list(one.worst)}, mean |Δ| {_short(one.mean_absolute)}, "
            f"max rel {_short(one.max_relative)}, {one.max_ulp:,} ULP, cosine {_short(one.cosine)}; "
            f"{one.out_of_tolerance:,} of {one.count:,} out of tolerance"
        )

    def _watch(self, rest: str) -> None:
        view = self.debugger.watch(rest)
        count = words.EVERYWHERE() if view.tensors is None else view.tensors
        self.say(words.ADDED(id=view.id, condition=view.condition, count=count, then=view.then))

    def _try(self, rest: str) -> None:
        trial = self.debugger.dry_run(rest)
        self.say(words.DRY(hits=trial.hits, tensors=trial.tensors) + (f"; {trial.note}" if trial.note else ""))
        for hit in trial.examples[:5]:
            self.say(hit_line(hit))

    def _watches(self) -> None:
        for view in self.debugger.watchpoints():
            mark = "●" if view.enabled else "○"
            given = ", ".join(f"{name}={value}" for name, value in view.parameters.items())
            where = ", ".join(view.on or view.nodes[:3]) or "*"
            self.say(f"{mark} {view.id:>3} {view.condition}({given}) on {where} then {view.then}  hits {view.hits}")

    def _recheck(self) -> None:
        answer = self.debugger.recheck()
        self.say(f"{_counted(answer['hits'], 'hit')} at step {answer['step']}")
        self._new_hits()

    def _hits(self) -> None:
        listed = self.debugger.hit_list(limit=50)
        if not listed.total:
            self.say(words.NO_HITS())
        for hit in listed.hits:
            self.say(hit_line(hit))

    def _find(self, rest: str) -> None:
        found = self.debugger.search(rest, limit=30)
        for node in found.nodes:
            source = f"  {node.source.file}:{node.source.line}" if node.source is not None else ""
            self.say(f"  {node.name}  {node.type}{source}")
        self.say(_counted(found.total, "node"))

    def _node(self, rest: str) -> None:
        """What a node is given and gives, from whom and to whom, and the line that made it."""
        info = msgspec.convert(self.debugger.get("node", name=rest.partition(":")[0]), NodeInfo)
        self.say(f"{info.name}  {info.type}  {info.phase} {info.kind}")
        if info.source is not None:
            beside = f"  (also {', '.join(info.same_line[:5])})" if info.same_line else ""
            self.say(f"  line       {info.source.file}:{info.source.line}  {info.source.code}{beside}")
        for word, others in (("from", info.producers), ("to", info.consumers)):
            for other in others:
                self.say(f"  {word:<10} {other.node}  {other.dtype}{list(other.shape)}")
        for tensor in info.tensors:
            self.say(
                f"  {tensor.role:<10} {tensor.address}  {stats_line(tensor.stats) if tensor.stats else ''}".rstrip()
            )
        if info.watched_by:
            self.say(f"  watched by {', '.join(map(str, info.watched_by))}; {_counted(len(info.hits), 'hit')}")

    def _done(self, answer: Any) -> None:
        text = answer.get("text", "") if isinstance(answer, dict) else ""
        self.say(said(text) or "done")

    def _leave(self) -> None:
        self.left = True

    def _address(self, text: str) -> tuple[str, str]:
        found = _SLICED.fullmatch(text.strip())
        if found is None:
            raise ValueError("name a tensor, like encoder.0:output or encoder.0:output[0,:5]")
        self.last = found["address"].strip()
        return self.last, found["slice"] or ""


def where(state: m.State) -> str:
    """'paused at step 37, after encoder.0 (forward): …'."""
    place = ""
    if state.place is not None:
        place = f", {state.place.when} {state.place.node} ({state.place.phase})"
        if state.place.source is not None:
            place += f" {state.place.source.file}:{state.place.source.line}"
    goal = f", on the way to {state.goal}" if state.goal else ""
    reason = ""
    if state.reason is not None and state.reason.text:
        reason = f": {said(spoken(state.reason.text, state.reason.text_zh))}"
    return words.STANDS(phase=state.phase, step=state.step, place=place or goal, reason=reason)


def hit_line(hit: HitView) -> str:
    star = "★" if hit.birth == "origin" else " "
    return f"{star} {hit.address}  {said(spoken(hit.reason, hit.reason_zh))}  (watchpoint {hit.watchpoint})"


def stats_line(stats: StatsView) -> str:
    bad = [
        f"{count:,} {name}"
        for name, count in (("NaN", stats.nan), ("+Inf", stats.pos_inf), ("-Inf", stats.neg_inf))
        if count
    ]
    figures = [f"{name} {_short(getattr(stats, name))}" for name in ("min", "max", "mean", "abs_mean", "l2", "std")]
    zeros = f"zeros {stats.zeros:,}"
    return f"{stats.dtype}{list(stats.shape)}  " + "  ".join((*bad, *figures, zeros))


def split(line: str) -> list[str]:
    return shlex.split(line)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _short(value: Any) -> str:
    number = as_float(value)
    return "—" if number is None else f"{number:.4g}"
