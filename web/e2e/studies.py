"""Studies for the browser tests: a small one with everything in it, and one of ten thousand trials.

python e2e/studies.py FOLDER [MANY]
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

from misstep.sentences import tune as sentences
from misstep.tuning import Tuner
from misstep.tuning.storage.shared import told

SPACE = {
    "lr": {"low": 1e-4, "high": 1.0, "log": True},
    "width": {"choice": [16, 32, 64, 128]},
    "optimizer": {"choice": ["adam", "sgd"]},
    "momentum": {"low": 0.0, "high": 0.99, "when": 'optimizer == "sgd"'},
    "layers": {"low": 1, "high": 6},
}


def small(base: Path, trials: int) -> None:
    with Tuner("mlp", SPACE, target="loss", seed=1, base=str(base)) as tuner:
        facts = {
            "targets": [{"name": "loss", "goal": "minimize"}],
            "parameters": list(SPACE),
            "log": ["lr"],
            "wanted": trials + 2,
        }
        tuner.shared.study.set_user_attr("misstep", facts)
        for trial in tuner.trials(trials):
            values = trial.params
            away = (math.log10(values["lr"]) + 2) ** 2 / 3 + (values["layers"] - 3) ** 2 / 12
            end = 0.05 + away + (0.2 if values["optimizer"] == "adam" else abs(values["momentum"] - 0.9)) / 2
            diverges = values["lr"] > 0.4
            for step in range(1, 21):
                trial.report(step, end + 2 * math.exp(-step / 4) + (step**2 if diverges else 0))
            tuner.shared.mark(trial.number, run=f"mlp-{trial.number:04d}", steps=20, seconds=12.5 + trial.number % 7)
            if diverges:
                why = sentences.DIVERGED.of(step=18, loss=324.0, begin=2.1)
                tuner.end(trial.number, "PRUNED", None, ended="divergence", **told(why))
            else:
                trial.tell(end)


def many(base: Path, trials: int) -> None:
    """A journal as a long study leaves it, written line by line: asking ten thousand times would take minutes."""
    chance = random.Random(0)
    start = "2026-11-18T03:00:00.000000+00:00"
    number = {"name": "FloatDistribution", "attributes": {"step": None, "low": 0.0, "high": 1.0, "log": False}}
    lines: list[dict[str, object]] = [{"op_code": 0, "study_name": "many", "directions": [1]}]
    for trial in range(trials):
        lines.append({"op_code": 4, "study_id": 0, "datetime_start": start})
        about: dict[str, object] = {"trial_id": trial}
        values = [chance.random() for _ in range(4)]
        lines += [
            {
                "op_code": 5,
                **about,
                "param_name": name,
                "param_value_internal": value,
                "distribution": json.dumps(number),
            }
            for name, value in zip("abcd", values)
        ]
        lines += [{"op_code": 7, **about, "step": step, "intermediate_value": 1 / step} for step in (1, 2, 3)]
        lines.append({"op_code": 8, **about, "user_attr": {"run": f"many-{trial:05d}"}})
        done = {"op_code": 6, **about, "state": 1, "values": [sum(values)], "datetime_complete": start}
        lines.append(done)
    text = "".join(json.dumps({**line, "worker_id": "w"}) + "\n" for line in lines)
    (base / "studies" / "many.journal").write_text(text)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    small(folder, 60)
    many(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
