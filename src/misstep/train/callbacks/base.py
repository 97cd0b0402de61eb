"""What a callback is, what it is told, and in which order callbacks run.

    on_train_begin
    └── on_train_epoch_begin
        └── on_train_step_begin · on_train_step_end      once a batch
        on_train_epoch_end
    on_train_end                                         on_eval_* has the same shape

Every `on_train_*` and `on_eval_*` method hands over to one of the six short names (`begin`, `epoch_begin`,
`step_begin`, `step_end`, `epoch_end`, `end`) unless it is overridden, so a callback may use either vocabulary.
Only methods somebody overrode are called during training: an unused moment costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, TypeAlias

from misstep.errors import TrainError, nearest

Phase: TypeAlias = Literal["train", "eval"]
Moment: TypeAlias = Literal["begin", "epoch_begin", "epoch_end", "step_begin", "step_end", "end"]
Hook: TypeAlias = Callable[["RunContext"], Any]

MOMENTS: tuple[Moment, ...] = ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")


class CallbackParams(dict[str, Any]):
    """What `RunContext.original_args()` returns: a dictionary whose keys are attributes too, and may be added to."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the run has no {name!r}{nearest(name, self)}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        del self[name]


class RunContext:
    """One training or evaluation as callbacks see it: what is known about it, and a way to end it.

    After `request_stop()` the current step's remaining callbacks run, then `epoch_end` and `end`, and training is over.
    """

    __slots__ = ("_args", "stop_requested")

    def __init__(self, original_args: dict[str, Any]) -> None:
        if not isinstance(original_args, dict):
            raise TypeError(f"RunContext takes a dictionary of arguments, got {type(original_args).__name__}")
        self._args = original_args if isinstance(original_args, CallbackParams) else CallbackParams(original_args)
        self.stop_requested = False

    def original_args(self) -> CallbackParams:
        """The run's attributes: network, optimizer, cur_epoch_num, cur_step_num, net_outputs and what users added."""
        return self._args

    def request_stop(self) -> None:
        """Ends the run after the current step."""
        self.stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether somebody asked for the end."""
        return self.stop_requested


class Callback:
    """Code that runs at chosen moments of training and evaluation; subclass it and override what you need.

    >>> class PrintLoss(Callback):
    ...     def step_end(self, run_context):
    ...         print(run_context.original_args().net_outputs)

    A callback is entered as a context manager before training and left after it, also when training fails.
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return None

    def begin(self, run_context: RunContext) -> None:
        """Before the network runs for the first time."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """After each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before each step."""

    def step_end(self, run_context: RunContext) -> None:
        """After each step."""

    def end(self, run_context: RunContext) -> None:
        """After the last step."""

    def on_train_begin(self, run_context: RunContext) -> None:
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        self.end(run_context)


class CallbackList:
    """Callbacks in the order they were given; entered together, left together in reverse.

    Anything with the methods of Callback is taken, so MindSpore's own callbacks work here too.
    """

    def __init__(self, callbacks: Callback | Iterable[Callback] | None) -> None:
        self.callbacks: list[Any] = list(_checked(callbacks))
        self._stack = ExitStack()

    def __enter__(self) -> CallbackList:
        for position, callback in enumerate(self.callbacks):
            if hasattr(callback, "__enter__"):
                entered = self._stack.enter_context(callback)
                if _looks_like_a_callback(entered):
                    self.callbacks[position] = entered
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def hooks(self, phase: Phase, moment: Moment, *, short_names: bool = True) -> tuple[Hook, ...]:
        """The methods to call at one moment, leaving out those nobody overrode.

        `short_names=False` also leaves out methods that merely hand over to a short name.
        """
        found: list[Hook] = []
        for callback in self.callbacks:
            long_name = f"on_{phase}_{moment}"
            method: Any = getattr(callback, long_name, None)
            if _is_default(callback, long_name, method):
                method = getattr(callback, moment, None) if short_names else None
                if _is_default(callback, moment, method):
                    continue
            found.append(method)
        return tuple(found)


def _checked(callbacks: Callback | Iterable[Callback] | None) -> Sequence[Callback]:
    if callbacks is None:
        return []
    if _looks_like_a_callback(callbacks):
        return [callbacks]  # type: ignore[list-item]
    if not isinstance(callbacks, list | tuple):
        raise TrainError(
            f"callbacks must be a Callback or a list of them, got {type(callbacks).__name__}; "
            "a function can be wrapped:  LambdaCallback(on_train_step_end=function)"
        )
    for callback in callbacks:
        if isinstance(callback, type):
            raise TrainError(f"{callback.__name__} is a class; callbacks take objects:  {callback.__name__}()")
        if not _looks_like_a_callback(callback):
            raise TrainError(f"callbacks must be Callback objects, got {type(callback).__name__} in the list")
    return callbacks


def _looks_like_a_callback(thing: object) -> bool:
    return not isinstance(thing, type) and (isinstance(thing, Callback) or hasattr(thing, "on_train_step_end"))


def _is_default(callback: object, name: str, method: Any) -> bool:
    if method is None:
        return True
    if not isinstance(callback, Callback):
        return False  # another project's class: its methods are always called
    return getattr(method, "__func__", None) is getattr(Callback, name)
