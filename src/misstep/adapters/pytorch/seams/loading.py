"""PyTorch's data loaders: how long a batch is waited for, how many lie ready, and what making one costs.

DataLoader.__init__            what it was made with, and on which line of the user's program
DataLoader.__iter__            workers are started here, anew in every epoch unless they persist
_BaseDataLoaderIter.__next__   the wait
fetchers' fetch                the making, in a worker or here
"""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, get_worker_info
from torch.utils.data._utils import fetch as fetchers
from torch.utils.data.dataloader import _BaseDataLoaderIter

from misstep.adapters.source import user_source
from misstep.adapters.timing.batches import BatchClock, Timed
from misstep.adapters.timing.lanes import TEXT_BYTES, VARIABLE, Lane, Lanes, lane_from_environment
from misstep.adapters.timing.loaders import Loaders
from misstep.core.segments import DATA, TRANSFER

if TYPE_CHECKING:
    from misstep.adapters.pytorch.adapter import PyTorchAdapter

_LIBRARIES = (os.path.dirname(os.path.abspath(torch.__file__)) + os.sep,)
_LOADER: Any = DataLoader
_ITERATOR: Any = _BaseDataLoaderIter


def watch_loaders(adapter: PyTorchAdapter) -> list[Callable[[], None]]:
    """Put the seams in; what is returned takes them out."""
    adapter.clock.restart()
    watch = LoaderSeam(adapter, adapter.loaders)
    return [*watch.install(), watch.remove_lanes]


class LoaderSeam:
    def __init__(self, adapter: PyTorchAdapter, loaders: Loaders) -> None:
        self.adapter, self.loaders = adapter, loaders
        self._lines: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._made: Counter[tuple[str, int]] = Counter()
        """Loaders made on each line."""
        self._here: BatchClock | None = None

    def install(self) -> list[Callable[[], None]]:
        return [
            _replace(_LOADER, "__init__", self._init(_LOADER.__init__)),
            _replace(_LOADER, "__iter__", self._iter(_LOADER.__iter__)),
            _replace(_ITERATOR, "__next__", self._next(_ITERATOR.__next__)),
            *[
                _replace(kind, "fetch", self._fetch(kind.fetch))
                for kind in (fetchers._MapDatasetFetcher, fetchers._IterableDatasetFetcher)
            ],
        ]

    def remove_lanes(self) -> None:
        self.loaders.close()

    def _elsewhere(self) -> bool:
        adapter = self.adapter
        return adapter.inert or adapter.thread not in (0, get_ident())

    def _init(self, original: Any) -> Any:
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            original(loader, *args, **kwargs)
            if not self.adapter.inert:
                line = user_source(sys._getframe(1), *_LIBRARIES)
                place = (line.file, line.line) if line is not None else ("", 0)
                nth, self._made[place] = self._made[place], self._made[place] + 1
                self._lines[loader] = line, nth

        return __init__

    def _iter(self, original: Any) -> Any:
        def __iter__(loader: Any) -> Any:
            if self._elsewhere():
                return original(loader)
            clock = self.adapter.clock
            before = clock.segment
            clock.epoch = True
            lanes = None
            try:
                lanes = self._lanes_for(loader)
            except Exception as error:
                self.adapter.listener.trouble("when a data loader began", error)
            clock.switch(DATA)
            _WAITING[:] = [lanes] if lanes is not None else []
            try:
                return original(loader)
            finally:
                _WAITING.clear()
                os.environ.pop(VARIABLE, None)
                clock.switch(before)

        return __iter__

    def _lanes_for(self, loader: Any) -> Lanes | None:
        """Memory for the workers about to start; None where they run already, or there are none."""
        number = self._numbers.get(loader)
        if number is None:
            number = self._numbers[loader] = self.loaders.met(_facts(loader, *self._lines.get(loader, (None, 0))))
        if not loader.num_workers or (loader.persistent_workers and getattr(loader, "_iterator", None) is not None):
            return None
        method = getattr(loader.multiprocessing_context, "get_start_method", lambda: _start_method())()
        lanes = self.loaders.lanes(number, loader.num_workers, named=method != "fork")
        if lanes.path:
            os.environ[VARIABLE] = lanes.path
        return lanes

    def _next(self, original: Any) -> Any:
        def __next__(iterator: Any) -> Any:
            if self._elsewhere():
                return original(iterator)
            clock = self.adapter.clock
            clock.ask(_ready(iterator))
            clock.switch(DATA)
            try:
                return original(iterator)
            finally:
                clock.switch(TRANSFER)

        return __next__

    def _fetch(self, original: Any) -> Any:
        def fetch(fetcher: Any, indices: Any) -> Any:
            clock = self._clock()
            if clock is None:
                return original(fetcher, indices)
            self._guarded(_begin, fetcher, clock)
            data = original(fetcher, indices)
            self._guarded(_end, fetcher, clock, data)
            return data

        return fetch

    def _guarded(self, act: Callable[..., None], *given: Any) -> None:
        """In a worker nobody hears of our failures; the batch is made all the same."""
        try:
            act(*given)
        except Exception as error:
            if get_worker_info() is None:
                self.adapter.listener.trouble("when a batch was made", error)

    def _clock(self) -> BatchClock | None:
        """Of this process; None in a worker that has no lane, and outside of the training thread."""
        info = get_worker_info()
        if info is None:
            if self._elsewhere():
                return None
            if self._here is None:
                self._here = BatchClock(-1, self.loaders.made_here.append, self.loaders.stages_here)
            return self._here
        if not _OF_WORKER or _OF_WORKER[0] != os.getpid():
            lane = Lane(_WAITING[0].memory, info.id) if _WAITING else lane_from_environment(info.id)
            clock = None
            if lane is not None:
                clock = BatchClock(info.id, lane.put, lambda stages: lane.say(stages.text(TEXT_BYTES)))
                clock.loader = _WAITING[0].number if _WAITING else 0
            _OF_WORKER[:] = [os.getpid(), clock]
        return _OF_WORKER[1]  # type: ignore[no-any-return]


_WAITING: list[Any] = []
"""The lanes of the data loader whose workers are being started: a fork inherits them."""
_OF_WORKER: list[Any] = []


def _begin(fetcher: Any, clock: BatchClock) -> None:
    if not hasattr(fetcher, "_misstep_collate"):
        _time(fetcher, clock)
    clock.begin()


def _end(fetcher: Any, clock: BatchClock, batch: Any) -> None:
    clock.end(batch, fetcher._misstep_collate[0])


def _time(fetcher: Any, clock: BatchClock) -> None:
    """Have a fetcher ask a dataset that is timed. The fetcher is torch's own and dies with its iterator."""
    spent = [0]
    collate = fetcher.collate_fn

    def timed(samples: Any) -> Any:
        began = perf_counter_ns()
        batch = collate(samples)
        spent[0] = perf_counter_ns() - began
        return batch

    fetcher._misstep_collate = spent
    fetcher.collate_fn = timed
    if hasattr(fetcher, "dataset_iter"):
        fetcher.dataset_iter = _timed_iterator(fetcher.dataset_iter, clock)
    else:
        fetcher.dataset = Timed(fetcher.dataset, clock)


def _timed_iterator(iterator: Any, clock: BatchClock) -> Any:
    class Following:
        """Samples in the order they come; their index is their place in it."""

        def __init__(self) -> None:
            self.number = -1

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            self.number += 1
            return clock.sample(lambda _: next(iterator), self.number)

    return Following()


def _ready(iterator: Any) -> int:
    """Batches that lie ready; -1 where none is made ahead."""
    queue = getattr(iterator, "_data_queue", None)
    if queue is None:
        return -1
    try:
        cached = len(iterator._task_info.get(iterator._rcvd_idx, ())) == 2
        return int(queue.qsize()) + cached
    except Exception:  # a system without the call, or a queue of another version
        return -1


def _facts(loader: Any, line: Any, nth: int) -> dict[str, Any]:
    dataset = loader.dataset
    try:
        size = len(dataset)
    except Exception:
        size = None  # an iterable one
    return {
        "framework": "pytorch",
        "dataset": type(dataset).__name__,
        "samples": size,
        "num_workers": int(loader.num_workers),
        "batch_size": loader.batch_size,
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": bool(loader.persistent_workers),
        "pin_memory": bool(loader.pin_memory),
        "source": line,
        "nth": nth,
    }


def _start_method() -> str:
    import multiprocessing

    return multiprocessing.get_start_method()


def watch_compiler(adapter: PyTorchAdapter) -> None:
    """Have the time of torch.compile told apart; nothing where nobody has loaded it."""
    if _COMPILER or "torch._dynamo" not in sys.modules:
        return
    handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
    if handler is None:
        return
    _COMPILER.append(handler)
    goes_on_with = [-1]

    def begins(args: Any) -> None:
        if not adapter.inert and adapter.thread == get_ident():
            goes_on_with[0] = adapter.clock.compiles()
            adapter.compilations.hooks.compiling()

    def ends(args: Any) -> None:
        if not adapter.inert and adapter.thread == get_ident() and goes_on_with[0] >= 0:
            adapter.clock.switch(goes_on_with[0])
            goes_on_with[0] = -1

    handler.register_start_callback(begins)
    handler.register_end_callback(ends)


_COMPILER: list[Any] = []


def _replace(owner: Any, name: str, replacement: Any) -> Callable[[], None]:
    original = getattr(owner, name)
    replacement.__name__ = name
    setattr(owner, name, replacement)

    def undo() -> None:
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo
