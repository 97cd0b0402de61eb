"""A flight record as one .zip: everything known of a run's end, to be opened on a machine that has nothing else.

    crash.zip
    ├── manifest.json      what kind of end, when, exit code or signal, which ranks
    ├── run.json           as in the run directory
    └── rank-0/            journal, graph and statistics, cut to their end, as in the run directory;
        ├── record.json    the ring: last steps, where it was, trail of modules, collectives, memory
        ├── reports.jsonl  stacks with variables, who held the memory     stacks/   by the fault handler
        ├── log.txt        the last lines it printed
        ├── batch/0.npy    what the network was called with, when it is small
        └── tensors.pack   whole tensors, those of verdicts and hits first, as far as there is room; tensors.idx

Unpacked it is a run directory, so that every reader of runs reads it. It is a function of the run directory alone:
whichever process is left makes it. Texts pass through the scrubber; of the environment nothing is told.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import linecache
import os
import re
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from misstep.core import cells
from misstep.core.secrets import Scrubber
from misstep.errors import RunError
from misstep.store import statsfile
from misstep.store.atomic import copy_file
from misstep.store.bundle.batch import read_batch
from misstep.store.bundle.machinecode import with_functions
from misstep.store.bundle.ring import Recorded, read_ring
from misstep.store.bundle.values import told, values_of
from misstep.store.codec import from_json, to_json
from misstep.store.journal import seal, unseal
from misstep.store.layout import RUN_FILE, RankPaths, rank_paths, ranks_in
from misstep.store.pack import StoredTensor

MANIFEST = "manifest.json"
FORMAT = 1
RECORDS = "records"
"""The folder of a run that holds its bundles."""

BundleKind = Literal["crash", "hang", "asked", "end"]

MB = 1 << 20
_JOURNAL_MB, _GRAPH_MB, _STATS_MB, _BATCH_MB, _STACKS_MB, _VALUES_MB = 2, 8, 8, 4, 1, 8
_KEPT_STEPS = 2000
_ALL_OF = frozenset({"start", "verdict", "finding", "exception", "end", "level", "lost"})


def write_bundle(
    run: Path, *, kind: BundleKind, environment: Mapping[str, str], exit_code: int | None = None, note: str = ""
) -> Path:
    """Make `records/<kind>.zip` of a run as it is now, and put it where the run wants its records exported to."""
    scrub = Scrubber(environment)
    folder = run / RECORDS
    folder.mkdir(exist_ok=True)
    target = folder / f"{kind}.zip"
    with _one_at_a_time(folder):
        draft = folder / f".{kind}.{os.getpid()}"
        try:
            _write(run, draft, kind, scrub, exit_code, note)
            with open(draft, "rb") as written:
                os.fsync(written.fileno())  # else a loss of power may leave the name without its bytes
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
    for place in _exports(run):
        with contextlib.suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            copy_file(target, place / f"{run.name}-{kind}.zip")
    return target


def bundles_of(run: Path) -> list[Path]:
    """The bundles of a run, the newest first."""
    try:
        found = [path for path in (run / RECORDS).iterdir() if path.suffix == ".zip"]
    except OSError:
        return []
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def can_be_recorded(run: Path) -> bool:
    """Whether a record of the run is there, or can be made of what its recorder left."""
    return bool(bundles_of(run)) or any(rank_paths(run, rank).ring.exists() for rank in ranks_in(run))


def is_bundle(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except Exception:  # whatever it is, it is no record of ours
        return False


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write(run: Path, draft: Path, kind: BundleKind, scrub: Scrubber, exit_code: int | None, note: str) -> None:
    ranks = ranks_in(run)
    if not ranks:
        raise RunError(f"{run} has recorded nothing yet; a flight record needs a training that began", run=str(run))
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        problems: list[str] = []
        left_out: list[StoredTensor] = []
        for rank in ranks:
            paths = rank_paths(run, rank)
            _write_rank(archive, paths, scrub, problems)
            left_out += _add_values(archive, paths, rank, problems, room=_VALUES_MB * MB // len(ranks))
        with contextlib.suppress(OSError, ValueError):
            _add(archive, RUN_FILE, to_json(scrub.plain(from_json((run / RUN_FILE).read_bytes()))))
        manifest = {
            "format": FORMAT,
            "kind": kind,
            "time": time.time(),
            "run": run.name,
            "ranks": ranks,
            "exit": exit_code,
            "note": note,
            "problems": problems,
            "left_out": told(left_out),
        }
        _add(archive, MANIFEST, to_json(scrub.plain(manifest)))


def _write_rank(archive: zipfile.ZipFile, paths: RankPaths, scrub: Scrubber, problems: list[str]) -> None:
    name = paths.directory.name
    _add(archive, f"{name}/journal.jsonl", b"".join(_clean(_journal(paths.journal), scrub)))
    _add(archive, f"{name}/graph.jsonl", b"".join(_clean(_lines(paths.graph, _GRAPH_MB * MB), scrub)))
    _add(archive, f"{name}/reports.jsonl", b"".join(_clean(_lines(paths.reports, _JOURNAL_MB * MB), scrub)))
    _add(archive, f"{name}/stats.bin", _statistics(paths.stats))
    for file in sorted(paths.stacks.glob("*.txt")) if paths.stacks.is_dir() else ():
        text = file.read_bytes()[-_STACKS_MB * MB :].decode("utf-8", "replace")
        if text.strip():
            _add(archive, f"{name}/stacks/{file.name}", scrub.text(with_functions(with_code(text))).encode())
    try:
        recorded = read_ring(paths.ring) if paths.ring.exists() else None
    except RunError as error:
        recorded = None
        problems.append(str(error))
    if recorded is not None:
        _add(archive, f"{name}/record.json", to_json(scrub.plain(_record(recorded, paths))))
        _add(archive, f"{name}/log.txt", scrub.text(recorded.log).encode())
    _add_batch(archive, paths)


def _record(recorded: Recorded, paths: RankPaths) -> dict[str, Any]:
    """The ring in words: names instead of numbers."""
    now = recorded.cells
    names = {line["id"]: line for line in _plain_lines(paths.modules)}
    trail = [names[number] for number in cells.trail(now) if number in names]
    files = recorded.notes.get("files", [])
    file = files[now[cells.FILE]] if 0 <= now[cells.FILE] < len(files) and now[cells.LINE] else ""
    return {
        "pid": recorded.pid,
        "started": recorded.started,
        "step": now[cells.STEP],
        "step_began": now[cells.STEP_BEGAN] / 1e9,
        "phase": cells.PHASES[now[cells.PHASE]] if 0 <= now[cells.PHASE] < len(cells.PHASES) else "",
        "called_from": f"{_short(file)}:{now[cells.LINE]}" if file else "",
        "called_code": linecache.getline(file, now[cells.LINE]).strip() if file else "",
        "modules_entered": now[cells.ENTERED],
        "trail": [{"name": line["name"], "type": line["type"]} for line in trail],
        "networks": sorted({line["type"] for line in names.values() if "." not in line["name"]}),
        "collective": cells.collective_name(now[cells.COLLECTIVE]),
        "collective_since": now[cells.SINCE] / 1e9,
        "collectives_done": now[cells.COLLECTIVES_DONE],
        "steps": list(recorded.steps),
        "batch": _batch(paths),
        "torn": recorded.torn,
        **{name: fact for name, fact in recorded.notes.items() if name not in ("files", "export")},
    }


def _batch(paths: RankPaths) -> dict[str, Any]:
    """What the network was called with last, without the values."""
    found = read_batch(paths.batch)
    if found is None:
        return {}
    step, tensors = found
    return {
        "step": step,
        "tensors": [{"dtype": one.dtype, "shape": list(one.shape), "digest": one.digest} for one in tensors],
    }


def with_code(stacks: str) -> str:
    """The fault handler's lines with the program's own beneath them: the machine that reads them lacks the files."""

    def tell(found: re.Match[str]) -> str:
        code = "" if "site-packages" in found[1] else linecache.getline(found[1], int(found[2])).strip()
        line = found[0].replace(found[1], _short(found[1]))
        return f"{line}\n    {code}" if code else line

    return re.sub(r'^  File "([^"]+)", line (\d+) in .*$', tell, stacks, flags=re.MULTILINE)


def _short(file: str) -> str:
    """Relative to here, when it lies below: the record is made where the program ran."""
    try:
        relative = os.path.relpath(file)
    except ValueError:
        return file
    return file if relative.startswith("..") else relative


def _journal(path: Path) -> Iterator[bytes]:
    """The last lines of a journal, and before those all that tell of something rare."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError:
        return
    tail = lines[-_KEPT_STEPS:]
    for line in lines[: -len(tail)] if tail else ():
        kind = line[9 : line.find(b'"', 9)].decode("ascii", "replace")
        if kind in _ALL_OF:
            yield line
    yield from tail


def _lines(path: Path, limit: int) -> Iterator[bytes]:
    try:
        data = path.read_bytes()
    except OSError:
        return
    yield from data[:limit].splitlines(keepends=True)


def _plain_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in _lines(path, 64 * MB):
        plain = unseal(line.rstrip(b"\n"))
        if plain is not None:
            yield plain


def _clean(lines: Iterator[bytes], scrub: Scrubber) -> Iterator[bytes]:
    """The lines without secrets, each with the checksum of what is left."""
    for line in lines:
        text = line.decode("utf-8", "replace")
        if scrub.text(text) == text:
            yield line
            continue
        plain = unseal(line.rstrip(b"\n"))
        if plain is not None:
            plain.pop("crc", None)
            yield seal(scrub.plain(plain))


def _statistics(path: Path) -> bytes:
    """The header and the last rows."""
    try:
        with open(path, "rb") as file:
            header = file.read(statsfile.HEADER_BYTES)
            size = os.fstat(file.fileno()).st_size
            rows = max(size - statsfile.HEADER_BYTES, 0) // statsfile.ROW_BYTES
            kept = min(rows, _STATS_MB * MB // statsfile.ROW_BYTES)
            file.seek(statsfile.HEADER_BYTES + (rows - kept) * statsfile.ROW_BYTES)
            return header + file.read(kept * statsfile.ROW_BYTES)
    except OSError:
        return b""


def _add_batch(archive: zipfile.ZipFile, paths: RankPaths) -> None:
    found = read_batch(paths.batch)
    if found is None:
        return
    _, tensors = found
    if sum(0 if one.values is None else one.values.nbytes for one in tensors) > _BATCH_MB * MB:
        return
    for number, one in enumerate(tensors):
        if one.values is not None:
            buffer = io.BytesIO()
            np.save(buffer, one.values, allow_pickle=False)
            _add(archive, f"{paths.directory.name}/batch/{number}.npy", buffer.getvalue())


def _add_values(
    archive: zipfile.ZipFile, paths: RankPaths, rank: int, problems: list[str], *, room: int
) -> tuple[StoredTensor, ...]:
    """The values of the tensors that matter most; what there was no room for."""
    values = values_of(paths, rank, _journal(paths.journal), room=room)
    _add(archive, f"{paths.directory.name}/{paths.pack.name}", values.pack)
    _add(archive, f"{paths.directory.name}/{paths.index.name}", values.index)
    problems += values.problems
    return values.left_out


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    if data:
        # A zip knows no year before 1980, and a machine without a clock begins in 1970.
        moment = max(time.localtime()[:6], (1980, 1, 1, 0, 0, 0))
        info = zipfile.ZipInfo(name, moment)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
        archive.writestr(info, data, compresslevel=6)


def _exports(run: Path) -> Iterator[Path]:
    for rank in ranks_in(run):
        try:
            place = read_ring(rank_paths(run, rank).ring).notes.get("export", "")
        except RunError:
            continue
        if place:
            yield Path(place)


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Ranks that end together take turns: whoever comes last has seen what all the others left."""
    with open(folder / ".lock", "ab") as lock:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.02)
        yield
