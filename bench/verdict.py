"""How often misstep is right about programs it was not written for: every trial of tests/trials, at every level.

    python bench/verdict.py [--only torch/isnan] [--level guard] [--json]

Rows for each level: step, operator, line and samples named right, in percent of the faults; and three that must be 0:
false sentences, changed programs (other output, weights or exit code), errors of misstep's own.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import report
from tests.trials.harness import LEVELS, Outcome, run_bare, run_watched, trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="trials whose name contains this")
    parser.add_argument("--level", choices=LEVELS, action="append")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    for trial in trials():
        if arguments.only not in trial.name:
            continue
        bare = run_bare(trial)
        for level in arguments.level or LEVELS:
            if level not in trial.levels:
                continue
            outcome = run_watched(trial, level, bare)
            outcomes.append(outcome)
            print(f"{trial.name:48} {level:7} {'; '.join(outcome.problems) or 'right'}", file=sys.stderr, flush=True)
    rows = [row for level in arguments.level or LEVELS for row in _rows(level, outcomes)]
    report(1.0, rows, as_json=arguments.json)


def _rows(level: str, outcomes: list[Outcome]) -> list[dict[str, object]]:
    here = [outcome for outcome in outcomes if outcome.level == level]
    faults = [outcome for outcome in here if outcome.trial.kind == "fault"]
    wrong = Counter(text.partition(":")[0].partition(";")[0] for outcome in faults for text in outcome.missed)
    rows: list[dict[str, object]] = []
    for what in ("step", "operator", "line", "samples"):
        asked = [one for one in faults if what != "samples" or "samples" in one.trial.truth]
        missed = wrong[what] + wrong["no verdict"] if what != "samples" else wrong[what]
        share = 100.0 * (1 - missed / len(asked)) if asked else 100.0
        rows.append({"case": f"{level}: {what}", "value": share, "unit": "% right"})
    others = [outcome for outcome in here if outcome.trial.kind not in ("fault", "healthy")]
    told = 100.0 * sum(not one.missed for one in others) / len(others) if others else 100.0
    rows.append({"case": f"{level}: other faults", "value": told, "unit": "% told"})
    for name, word in (("false sentences", "false"), ("changed weights", "changed"), ("own errors", "own")):
        count = sum(bool(getattr(outcome, word)) for outcome in here)
        rows.append({"case": f"{level}: {name}", "value": float(count), "unit": "trials"})
    return rows


if __name__ == "__main__":
    main()
