"""MindSpore 2.10 and NumPy 2 do not go together: told once, at the start, with the fix.

The wheel asks for numpy>=1.25 and was built against NumPy 1: it imports with NumPy 2 and fails at the first operator
that takes a number or a tuple, with `SystemError: <built-in method …> returned a result with an exception set`.
"""

from __future__ import annotations


def numpy_problem(mindspore: str, numpy: str) -> str:
    """A sentence with the fix; empty when the two versions fit.

    >>> numpy_problem("2.10.0", "1.26.4")
    ''
    """
    if not mindspore.startswith("2.10.") or int(numpy.partition(".")[0]) < 2:
        return ""
    return (
        f"MindSpore {mindspore} was built for NumPy 1 and fails with NumPy {numpy} (SystemError at the first operator);"
        "  pip install 'numpy<2'"
    )
