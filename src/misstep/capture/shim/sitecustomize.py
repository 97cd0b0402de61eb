"""The first line of misstep inside the user's process: waits until a framework is imported, then attaches.

`misstep run` puts this directory at the front of PYTHONPATH, so Python imports this file when it starts, in every
Python process of the user's command, however it was launched. It costs a millisecond or two, imports nothing heavy,
and does nothing at all unless MISSTEP_ATTACH is set. Whatever goes wrong here, the user's program runs as before.

    sitecustomize ── the user's own sitecustomize runs too
         └── AfterImport on sys.meta_path ── torch imported ──► misstep.capture.attach.attach_framework("pytorch")
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # not from typing, whose import would cost more than all of this file
if TYPE_CHECKING:
    from typing import Any

# `importlib.machinery` would be one more import at every start of every Python process; this one is there already.
_external: Any = sys.modules["_frozen_importlib_external"]

_HERE = os.path.dirname(os.path.abspath(__file__))
_HOME = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
"""The directory that holds the package misstep."""

_LENT = ("misstep", "ml_dtypes", "msgspec")
"""All that a program of another environment may find in ours; numpy and the framework must be its own."""


class AfterImport:
    """Calls `attach` right after a framework's import has finished; before that it only looks at names."""

    def __init__(self, waiting: dict[str, str]) -> None:
        self.waiting = waiting

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.waiting:
            return None
        spec = self._real_spec(name, path, target)
        loader: Any = getattr(spec, "loader", None)
        run = getattr(loader, "exec_module", None)
        if run is None:
            return spec

        def exec_module(module: Any) -> None:
            # Undone first, so that the loader is as it was when the framework looks at it, or when its import fails.
            del loader.exec_module
            run(module)
            self.done(name)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader that cannot be touched: not worth breaking an import for
        return spec

    def _real_spec(self, name: str, path: Any, target: Any) -> Any:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec = find(name, path, target)
                if spec is not None:
                    return spec
        return None

    def done(self, name: str) -> None:
        framework = self.waiting.pop(name, None)
        if not self.waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        if framework is not None:
            attach(framework)


class Lender:
    """Lets a program whose environment has no misstep find ours, and nothing else that is installed with it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name in _LENT:
            return _external.PathFinder.find_spec(name, [_HOME, *_packages()], target)
        return None


def _packages() -> list[str]:
    listed = os.environ.get("MISSTEP_PACKAGES", "")
    return [part for part in listed.split(os.pathsep) if part]


def _frameworks() -> dict[str, str]:
    """By package a program may import, the name of the framework: the command's parent listed them."""
    listed = os.environ.get("MISSTEP_FRAMEWORKS", "torch=pytorch mindspore=mindspore")
    return dict(part.split("=", 1) for part in listed.split() if "=" in part)


def attach(framework: str) -> None:
    """Hand over to the engine; training is the user's, so nothing but Ctrl-C leaves this function."""
    try:
        door = os.environ.get("MISSTEP_DOOR", "misstep.capture.attach")
        __import__(door)
        sys.modules[door].attach_framework(framework)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if os.environ.get("MISSTEP_STRICT", "").lower() in ("1", "true", "yes", "on"):
            raise
        _say(error)


def _say(error: BaseException) -> None:
    missing = getattr(error, "name", None) if isinstance(error, ImportError) else None
    if missing and not missing.startswith("misstep"):
        text = f"this process is not watched: {sys.executable} has no {missing} (pip install {missing})"
    else:
        text = f"this process is not watched: {type(error).__name__}: {error}"
    try:
        sys.stderr.write("misstep: " + text + "\n")
    except Exception:
        pass  # no stderr (pythonw, a closed pipe): nobody to tell


def _start() -> None:
    sys.path[:] = [part for part in sys.path if os.path.abspath(part or ".") != _HERE]
    if os.environ.get("MISSTEP_ATTACH") == "1":
        sys.meta_path.append(Lender())
        frameworks = _frameworks()
        sys.meta_path.insert(0, AfterImport({k: v for k, v in frameworks.items() if k not in sys.modules}))
        for name, framework in frameworks.items():
            if name in sys.modules:
                attach(framework)


def _run_the_users_own() -> None:
    """Their sitecustomize was hidden by ours: find it on the rest of the path, and let it be `sitecustomize`."""
    spec = _external.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module: Any = type(sys)("sitecustomize")
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__cached__ = spec.cached
    sys.modules["sitecustomize"] = module
    # An error in it rises to `site`, which reports it exactly as it would have without us.
    spec.loader.exec_module(module)


_start()
_run_the_users_own()
