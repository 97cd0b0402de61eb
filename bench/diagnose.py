"""How well `misstep diagnose` names the cause: every program of tests/faults, run watched and diagnosed.

    python bench/diagnose.py                  the table, with the half the thresholds were set on apart
    python bench/diagnose.py --json           one object {"control", "rows"}
    python bench/diagnose.py --only torch_broken --level module

Recall is the share of broken programs whose first finding is the true cause, precision the share of first findings
that are true. The row that counts most is *false errors on healthy runs*.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "faults"))

from corpus import Program, programs, timed
from measure import report


@dataclass
class Count:
    programs: int = 0
    first: int = 0
    among_three: int = 0
    spoke: int = 0
    errors: int = 0
    warned: int = 0
    seconds: float = 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="*", default=[], help="files of the corpus, without .cells")
    parser.add_argument("--level", default="guard", choices=["guard", "module"])
    given = parser.parse_args()
    chosen = programs(*given.only)
    counts = {(kind, half): Count() for kind in ("broken", "healthy") for half in ("set", "held")}
    missed = []
    for place, program in enumerate(chosen):
        print(f"\r{place + 1}/{len(chosen)} {program.name:40}", end="", file=sys.stderr)
        missed += _one(program, counts, given.level)
    print(file=sys.stderr)
    rows = _rows(counts)
    broken = [counts["broken", half] for half in ("set", "held")]
    control = sum(one.first for one in broken) / max(1, sum(one.programs for one in broken))
    report(control, rows, as_json=given.json)
    if not given.json:
        for line in missed:
            print(line)
    return 0


def _one(program: Program, counts: dict[tuple[str, str], Count], level: str) -> list[str]:
    count = counts["healthy" if program.healthy else "broken", program.half]
    with tempfile.TemporaryDirectory() as folder:
        diagnosis, seconds = timed(program, Path(folder), level)
    rules = [one.rule for one in diagnosis.causes]
    count.programs += 1
    count.seconds += seconds
    count.spoke += bool(rules)
    count.errors += bool(diagnosis.errors)
    count.warned += bool(rules) and not diagnosis.errors
    count.first += rules[:1] == [program.cause]
    count.among_three += program.cause in rules[:3]
    if program.healthy:
        return [f"healthy {program.name}: {rules}"] if rules else []
    return [] if rules[:1] == [program.cause] else [f"{program.name} ({program.half}): {program.cause}, said {rules}"]


def _rows(counts: dict[tuple[str, str], Count]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []

    def row(case: str, value: float, unit: str) -> None:
        rows.append({"case": case, "value": value, "unit": unit})

    for half in ("set", "held"):
        broken, healthy = counts["broken", half], counts["healthy", half]
        if broken.programs:
            row(f"broken programs, {half}", broken.programs, "programs")
            row(f"recall, first finding, {half}", broken.first / broken.programs, "share")
            row(f"recall, first three, {half}", broken.among_three / broken.programs, "share")
            row(f"precision of the first finding, {half}", broken.first / max(1, broken.spoke + healthy.spoke), "share")
            row(f"time a broken program, {half}", broken.seconds / broken.programs, "s")
        if healthy.programs:
            row(f"healthy programs, {half}", healthy.programs, "programs")
            row(f"false errors on healthy runs, {half}", healthy.errors, "programs")
            row(f"healthy runs with a warning, {half}", healthy.warned, "programs")
    row("false errors on healthy runs", sum(counts["healthy", half].errors for half in ("set", "held")), "programs")
    return rows


if __name__ == "__main__":
    sys.exit(main())
