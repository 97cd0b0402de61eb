"""Draws docs/images/verdict.svg: the real output of the demo, as a terminal.

make docs
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]


def main() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "COLUMNS": "108",
        "FORCE_COLOR": "1",
        "LANG": "C.UTF-8",
    }
    script = "examples/torch_log_of_negative.py"
    console = Console(record=True, width=112, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        for words in (["run", "--level", "op", "python", script], ["show", "last"]):
            typed = "misstep " + " ".join(words)
            console.print(Text(f"$ {typed}", style="bold"))
            command = [sys.executable if word == "python" else word for word in words]
            done = subprocess.run(
                [sys.executable, "-m", "misstep", *command], cwd=folder, env=environment, capture_output=True, text=True
            )
            text = done.stdout + done.stderr if words[0] == "run" else "\n".join(done.stdout.splitlines()[:16])
            console.print(Text.from_ansi(text.replace(f"{ROOT}/", "").rstrip()))
    picture = console.export_svg(title="misstep")
    # A picture in our documents asks nobody for fonts.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
    (ROOT / "docs/images/verdict.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
