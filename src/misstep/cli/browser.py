"""Opening the page without showing its token to the machine: a command line is everybody's to read.

The browser is given a file only this user can read, which leads to the page; it is gone a minute later.
"""

from __future__ import annotations

import atexit
import html
import json
import shutil
import tempfile
import threading
import webbrowser
from pathlib import Path

_SECONDS = 60.0


def open_page(page: str) -> None:
    """Show a page of the hub in the user's browser."""
    folder = Path(tempfile.mkdtemp(prefix="misstep-open-"))  # 0700
    file = folder / "page.html"
    file.touch(mode=0o600)
    target = json.dumps(page).replace("<", "\\u003c")
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><title>misstep</title><script>location.replace({target})</script>'
        f'<noscript><a href="{html.escape(page, quote=True)}">misstep</a></noscript>',
        encoding="utf-8",
    )
    forget = threading.Timer(_SECONDS, shutil.rmtree, (folder,), {"ignore_errors": True})
    forget.daemon = True
    forget.start()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    webbrowser.open(file.as_uri())
