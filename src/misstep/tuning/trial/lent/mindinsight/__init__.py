"""Stands in for MindInsight in a trial where it is not installed, so that MindOptimizer's scripts run unchanged.

Where it is installed, the real one takes this module's place.
"""

import os
import sys
from importlib.machinery import PathFinder

_here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_spec = PathFinder.find_spec("mindinsight", [part for part in sys.path if os.path.abspath(part or ".") != _here])
if _spec is not None and _spec.loader is not None and _spec.submodule_search_locations is not None:
    __path__ = list(_spec.submodule_search_locations)
    __spec__, __file__ = _spec, str(_spec.origin)
    _spec.loader.exec_module(sys.modules[__name__])
