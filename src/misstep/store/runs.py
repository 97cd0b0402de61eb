"""The folder of runs: making a new one, finding one by its name, and a cheap look at all of them."""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import random
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from misstep.core.finding import Verdict
from misstep.core.run import FORMAT_VERSION, RunInfo, RunState, Step
from misstep.errors import FormatError, RunNotFound, RunTooNew, nearest
from misstep.settings import Settings
from misstep.store.boundary import plain_name
from misstep.store.codec import decode, encode, from_json, to_json
from misstep.store.journal import unseal
from misstep.store.layout import RUN_FILE, RUN_VARIABLE, is_run, rank_paths, ranks_in
from misstep.store.modes import directory_mode, file_mode, make_run_directory
from misstep.store.reading.liveness import birth_of, process_exists, writer_lives
from misstep.store.stepline import steps_before
from misstep.store.writing.scrubbed import scrubber

_LONGEST_NAME = 120
"""Bytes of a run's name: others put endings behind it."""
_WORDS = """
    ant ape bat bear bee bison boar buck bull carp cat clam cod colt cow crab crane crow cub deer dingo dodo doe dog
    dove duck eagle eel elk emu ewe fawn finch fish fly fox frog gnat gnu goat goose gull hare hawk hen heron hog
    horse ibex ibis jay kiwi koala lamb lark lion lynx mink mole moth mouse mule newt orca oryx otter owl ox panda
    pig pika pike pony puma quail ram rat raven ray robin rook seal shark sheep shrew skunk sloth slug snail snake
    sow squid stag stork swan swift tapir tern tick tiger toad trout tuna viper vole wasp whale wolf wren yak zebra
""".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What `misstep ls` shows of a run."""

    name: str
    path: Path
    state: RunState
    started: float
    steps: int
    """The number of the last step."""
    loss: float | None
    """Of the last step."""
    ranks: tuple[int, ...]
    versions: dict[str, str]
    verdict: str
    """The sentence of the first bad value; empty when there was none."""
    command: tuple[str, ...] = ()
    host: str = ""
    first_bad: Verdict | None = None
    directory: str = ""
    """Where the command was typed."""


def new_run_directory(base: Path | str | None = None, name: str = "") -> Path:
    """Make a directory for a run, or find the one this launch writes to already (MISSTEP_RUN); its absolute path.

    The name is the time and a short word; a name given is taken, with -2, -3 … behind it when it exists. Where nothing
    can be written the path is returned all the same: the writer warns, counts what is lost, and tries again.
    """
    given = os.environ.get(RUN_VARIABLE, "")
    name = fitting_name(name)
    folder = _folder(base).absolute()
    try:
        if given:
            make_run_directory(Path(given))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            return _agreed_directory(folder, name) if _has_siblings() else _fresh_directory(folder, name)
    except OSError:
        pass
    return Path(given).absolute() if given else folder / (name or _fresh_name())


def write_run_file(directory: Path, info: RunInfo) -> None:
    """Write run.json unless another rank has; it appears whole or not at all."""
    target = directory / RUN_FILE
    if target.exists():
        return
    draft = directory / f".{RUN_FILE}.{socket.gethostname()}.{os.getpid()}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, file_mode()), "wb") as file:
            file.write(to_json(scrubber().plain(encode(info, defaults=True))) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, target)  # unlike a rename this never replaces what another rank has written
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def read_run_file(directory: Path) -> tuple[RunInfo, str]:
    """run.json, and a sentence about its damage; what can be guessed stands in for what is lost."""
    path = directory / RUN_FILE
    try:
        plain = from_json(path.read_bytes())
        version = plain.get("format", FORMAT_VERSION)
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise RunTooNew(
                f"{directory.name} was written by a later misstep (format {version}, this one reads up to"
                f" {FORMAT_VERSION}):  pip install -U misstep",
                run=str(directory),
            )
        return decode(RunInfo, plain), ""
    except FileNotFoundError:
        damage = f"{RUN_FILE}: missing"
    except OSError as error:
        damage = f"{RUN_FILE}: {error.strerror}"
    except (ValueError, TypeError, AttributeError) as error:
        damage = f"{RUN_FILE}: cannot be read ({error})"
    try:
        started = directory.stat().st_mtime
    except OSError:
        started = 0.0
    return RunInfo(name=directory.name, command=(), started=started, directory=str(directory)), damage


def resolve(name: Path | str, base: Path | str | None = None) -> Path:
    """The directory of a run given by path, name, beginning of a name, or `last`."""
    path = Path(name)
    for candidate in (path, path.parent):  # a rank directory or a file of the run will do as well
        if (len(path.parts) > 1 or candidate is path) and is_run(candidate):
            return candidate
    folder = _folder(base)
    text = str(name)
    runs = run_directories(folder)
    if not runs:
        raise RunNotFound(
            f"no run {text!r}, and there are no runs in {folder}/; record one with:  misstep run python train.py",
            run=text,
        )
    if text == "last":
        return max(runs, key=_started)
    by_name = {run.name: run for run in runs}
    if text in by_name:
        return by_name[text]
    fitting = [known for known in by_name if known.startswith(text)] or [known for known in by_name if text in known]
    if text and len(fitting) == 1:
        return by_name[fitting[0]]
    if text and fitting:
        shown = ", ".join(sorted(fitting)[-5:])
        raise RunNotFound(f"{text!r} fits {len(fitting)} runs in {folder}/: {shown}; write more of the name", run=text)
    raise RunNotFound(f"no run {text!r} in {folder}/{nearest(text, by_name)}", run=text)


def list_runs(base: Path | str | None = None) -> list[RunSummary]:
    """Every run in the folder, the newest first, without reading statistics or whole journals."""
    summaries = []
    for directory in run_directories(_folder(base)):
        try:
            summaries.append(summary_of(directory))
        except RunTooNew:
            summaries.append(too_new(directory))
    return sorted(summaries, key=lambda summary: summary.started, reverse=True)


def delete_run(directory: Path) -> None:
    """Gone from the list at once, then from the disk: a run half deleted is never met."""
    hidden = directory.with_name(f".deleted-{directory.name}-{os.getpid()}-{time.time_ns()}")
    directory.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def too_new(directory: Path) -> RunSummary:
    """A line for a run this misstep cannot read."""
    verdict = "written by a later misstep: pip install -U misstep"
    return RunSummary(directory.name, directory, "lost", 0.0, 0, None, (), {}, verdict)


_BY_WEIGHT: tuple[RunState, ...] = ("paused", "running", "starting", "failed", "lost", "stopped")


def state_of(ranks: list[RunState]) -> RunState:
    """The state of a run from the states of its ranks: alive while one is, else the worst end."""
    for state in _BY_WEIGHT:
        if state in ranks:
            return state
    return "finished" if ranks else "lost"


def rank_state(*, end: dict[str, object] | None, paused: bool, steps: bool, alive: bool) -> RunState:
    """The state of one rank: its own last word, else whether it lives."""
    if end is not None:
        reason = end.get("reason")
        if reason in ("finished", "failed", "stopped"):
            return reason
        return "finished" if end.get("exit") in (0, None) else "failed"
    if not alive:
        return "lost"
    return "paused" if paused else "running" if steps else "starting"


# ── a cheap look ─────────────────────────────────────────────────────────────────────────────────────────────────────

_TAIL_BYTES = 64 * 1024


def summary_of(directory: Path) -> RunSummary:
    """One run, from the ends of its journals."""
    info, _ = read_run_file(directory)
    ranks = ranks_in(directory)
    states: list[RunState] = []
    last: Step | None = None
    verdicts: list[Verdict] = []
    for rank in ranks:
        look = _Look(rank_paths(directory, rank).journal)
        states.append(look.state())
        if look.last_step is not None and (last is None or look.last_step.number > last.number):
            last = look.last_step
        verdicts += look.verdicts
    first_bad = min(verdicts, key=lambda verdict: verdict.moment, default=None)
    starting = not ranks and info.host == socket.gethostname() and process_exists(info.pid)
    return RunSummary(
        name=directory.name,
        path=directory,
        state="starting" if starting else state_of(states),
        started=info.started,
        steps=last.number if last else 0,
        loss=last.loss if last else None,
        ranks=tuple(ranks),
        versions=info.versions,
        verdict=first_bad.sentence() if first_bad else "",
        command=info.command,
        host=info.host,
        first_bad=first_bad,
        directory=info.directory,
    )


class _Look:
    """The first line of a journal, its end, and its verdicts wherever they are."""

    def __init__(self, journal: Path) -> None:
        self.last_step: Step | None = None
        self.verdicts: list[Verdict] = []
        self._start: dict[str, object] = {}
        self._end: dict[str, object] | None = None
        self._paused = False
        self._journal = journal
        try:
            with open(journal, "rb") as file:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    self._read(data)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):  # none yet, an empty one, or nonsense
            return

    def state(self) -> RunState:
        alive = writer_lives(self._start, self._journal)
        return rank_state(end=self._end, paused=self._paused, steps=self.last_step is not None, alive=alive)

    def _read(self, data: mmap.mmap) -> None:
        self._start = unseal(data[: max(data.find(b"\n"), 0)]) or {}
        begin = 0
        if len(data) > _TAIL_BYTES:
            begin = data.find(b"\n", len(data) - _TAIL_BYTES) + 1
        for line in data[begin:].split(b"\n")[:-1]:
            plain = unseal(line)
            if plain is None:
                continue
            kind = plain.get("kind")
            if kind == "step":
                self.last_step = decode(Step, plain["step"])
            elif kind == "end":
                self._end = plain
            elif kind == "state":
                self._paused = plain.get("state") == "paused"
        if self.last_step is None and begin:  # thousands of hits behind the last step
            self._step_before(data, begin)
        at = data.find(b'{"kind":"verdict"')
        while at >= 0:
            end = data.find(b"\n", at)
            plain = unseal(data[at:end]) if end > 0 else None
            if plain is not None:
                verdict = decode(Verdict, plain["verdict"])
                self.verdicts = [other for other in self.verdicts if other.step != verdict.step] + [verdict]
            at = data.find(b'{"kind":"verdict"', at + 1)

    def _step_before(self, data: mmap.mmap, end: int) -> None:
        for line in steps_before(data, end):
            plain = unseal(line)
            if plain is not None:
                self.last_step = decode(Step, plain["step"])
                return


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _folder(base: Path | str | None) -> Path:
    return Path(Settings.load().dir) if base is None else Path(base)


def run_directories(folder: Path) -> list[Path]:
    """Every run of a folder by its place, none of them read."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.path for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return []
    # Asked every second of folders with thousands of runs: a plain look at a name before anything that costs more.
    runs = [Path(name) for name in names if os.path.isfile(f"{name}/{RUN_FILE}") or ranks_in(Path(name))]
    known = set(map(str, runs))
    return runs + _summaries_as_runs([folder, *(Path(name) for name in names if name not in known)])


def _summaries_as_runs(folders: list[Path]) -> list[Path]:
    """A summary folder of MindSpore among the runs is one of them; one that cannot be read is passed over."""
    from misstep.store.foreign.mindspore.summary import looks_like_summary
    from misstep.store.foreign.mindspore.summary_run import summary_run

    runs = []
    for folder in folders:
        with contextlib.suppress(OSError, FormatError):
            if looks_like_summary(folder):
                runs.append(summary_run(folder))
    return runs


def _started(directory: Path) -> tuple[float, str]:
    try:
        return read_run_file(directory)[0].started, directory.name
    except RunTooNew:
        return 0.0, directory.name


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H-%M-%S", time.localtime(seconds))


def _fresh_name() -> str:
    # A generator of our own: the user's random numbers stay what they were.
    return f"{_stamp(time.time())}-{random.SystemRandom().choice(_WORDS)}"


def _fresh_directory(folder: Path, name: str) -> Path:
    attempt = 1
    while True:
        numbered = name if attempt == 1 else f"{name}-{attempt}"
        directory = folder / (numbered if name else _fresh_name())
        try:
            directory.mkdir(mode=directory_mode())
            return directory
        except FileExistsError:
            attempt += 1


def fitting_name(name: str) -> str:
    """A name as one folder among the runs: no path, no control characters, no more than any file system takes.

    >>> fitting_name("../../etc"), fitting_name("try 7")
    ('etc', 'try 7')
    """
    marks = "".join("-" if mark in "/\\" or not mark.isprintable() else mark for mark in name)
    return marks.encode("utf-8", "replace")[:_LONGEST_NAME].decode("utf-8", "ignore").strip().lstrip(".-")


def _has_siblings() -> bool:
    """True for one of several ranks; torchrun and msrun tell how many there are."""
    sizes = (os.environ.get(name, "") for name in ("WORLD_SIZE", "RANK_SIZE", "MS_WORKER_NUM"))
    return any(size.isdecimal() and int(size) > 1 for size in sizes)


def _agreed_directory(folder: Path, name: str) -> Path:
    """The same directory in every rank of one launch: whoever comes first writes it down where the others look."""
    launcher = os.getppid()
    marks = [os.environ.get(mark, "") for mark in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
    digest = hashlib.sha256("|".join([*marks, str(launcher), birth_of(launcher)]).encode()).hexdigest()
    agreed = folder / f".launch-{digest[:16]}"
    if not agreed.exists():
        mine = _fresh_directory(folder, name)
        draft = folder / f"{agreed.name}.{os.getpid()}"
        draft.write_text(mine.name, encoding="utf-8")
        try:
            os.link(draft, agreed)
            return mine
        except FileExistsError:
            mine.rmdir()
        finally:
            draft.unlink()
    written = agreed.read_text(encoding="utf-8")
    return folder / (written if plain_name(written) else fitting_name(written) or _fresh_name())
