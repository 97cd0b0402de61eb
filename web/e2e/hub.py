"""A hub for the browser tests: prints where it is, and lives until its input ends.

python e2e/hub.py FOLDER [--prefix /some/path]
"""

from __future__ import annotations

import json
import sys

from misstep.hub.server import start_hub


def main() -> None:
    folder = sys.argv[1]
    prefix = sys.argv[3] if len(sys.argv) > 3 else ""
    port = int(sys.argv[5]) if len(sys.argv) > 5 else 0
    token = sys.argv[7] if len(sys.argv) > 7 else ""
    with start_hub(folder, prefix=prefix, port=port, token=token) as hub:
        print(json.dumps({"url": hub.url, "link": hub.link, "token": hub.token, "page": hub.page}), flush=True)
        sys.stdin.read()


main()
