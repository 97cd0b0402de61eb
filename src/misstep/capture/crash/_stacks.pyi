"""Where machine code is, by signals: see native/stacks.cpp. Nothing is here on other systems than Linux with glibc."""

def watch_fatal(file: int, /) -> bool:
    """Write the frames of a fatal signal to this file, then pass the signal on; False when somebody does already."""

def leave_fatal() -> None:
    """Put back the handlers that were there."""

def threads(seconds: float, /) -> list[tuple[int, list[int]]]:
    """(thread, addresses, the innermost first) of every other thread that answers within this time."""
