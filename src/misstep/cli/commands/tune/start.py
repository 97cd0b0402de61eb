"""`misstep tune FILE`: run trials until there are enough, or propose a study file."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType

import click

from misstep.cli import FINE
from misstep.cli.command import command as define
from misstep.cli.command import dir_option, json_option, option
from misstep.cli.render.json import print_json
from misstep.cli.render.study import Bar, best_lines, values_text
from misstep.errors import TuneError
from misstep.sentences.cli import tune as words
from misstep.sentences.text import said
from misstep.settings import Settings
from misstep.store.atomic import write_text
from misstep.tuning.results import plain
from misstep.tuning.storage.places import shown
from misstep.tuning.storage.table import Table, from_optuna
from misstep.tuning.studyfile import Study, check_command, json_schema, read_study
from misstep.tuning.studyfile.like import study_like
from misstep.tuning.worker import News, Worker


@define(
    "tune",
    about=words.ABOUT_TUNE,
    examples=(
        "misstep tune study.yaml",
        "misstep tune study.yaml --trials 100 --workers 4",
        "misstep tune study.yaml --storage postgresql://tuner@db/studies",
        "misstep tune study.yaml --like 'python train.py'",
    ),
)
@click.argument("file", required=False)
@option("--trials", type=click.IntRange(1), text=words.HELP_TRIALS)
@option("--workers", type=click.IntRange(1), text=words.HELP_WORKERS)
@option("--storage", metavar="WHERE", text=words.HELP_STORAGE)
@option("--ray", "cluster", metavar="ADDRESS", text=words.HELP_RAY)
@option("--like", metavar="COMMAND", text=words.HELP_LIKE)
@option("--schema", is_flag=True, text=words.HELP_SCHEMA)
@option("--config", metavar="FILE", text=words.HELP_CONFIG)
@option("--iter", "iterations", type=click.IntRange(1), text=words.HELP_ITER)
@json_option
@dir_option
def command(
    file: str | None,
    *,
    trials: int | None,
    workers: int | None,
    storage: str | None,
    cluster: str | None,
    like: str | None,
    schema: bool,
    config: str | None,
    iterations: int | None,
    as_json: bool,
    directory: str | None,
) -> int:
    if schema:
        click.echo(json.dumps(json_schema(), indent=2))
        return FINE
    file = file or config
    if like is not None:
        return _propose(like, file)
    if file is None:
        raise click.UsageError(words.NO_FILE(), click.get_current_context())
    study = read_study(file)
    check_command(study)
    base = directory or Settings.load().dir
    if cluster is not None:
        from misstep.tuning.cluster import run_on_ray

        return _told(study, run_on_ray(study, address=cluster, base=base, trials=trials or iterations), as_json=as_json)
    return _run(study, base, trials or iterations, workers, storage or "", as_json=as_json)


def _run(study: Study, base: str, trials: int | None, workers: int | None, storage: str, *, as_json: bool) -> int:
    telling = Telling(study, as_json=as_json)
    worker = Worker(study, base=base, storage=storage, trials=trials, workers=workers, listen=telling.hear)
    telling.begin(worker)
    _end_on_request(worker)
    try:
        worker.run()
    except KeyboardInterrupt:
        telling.close()
        click.echo(f"misstep: {words.INTERRUPTED(command=shlex.join(['misstep', *sys.argv[1:]]))}", err=True)
        return 130
    finally:
        telling.close()
    return _told(study, from_optuna(worker.shared.study), as_json=as_json)


def _told(study: Study, table: Table, *, as_json: bool) -> int:
    if as_json:
        print_json(
            {"study": table.name, "trials": len(table.trials), "best": [plain(one, table) for one in table.best()]}
        )
    else:
        for line in best_lines(table, study):
            click.echo(line)
    return FINE


def _propose(like: str, file: str | None) -> int:
    if file is not None and Path(file).exists():
        raise TuneError(words.EXISTS(file=file))
    text = study_like(like)
    if file is None:
        click.echo(text, nl=False)
    else:
        write_text(file, text)
        click.echo(words.WROTE(file=file))
    return FINE


def _end_on_request(worker: Worker) -> None:
    """A supervisor's SIGTERM is a Ctrl-C: running trials end and are run again next time."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)


class Telling:
    """What a person sees while a study runs: a line a trial, and a bar below on a terminal."""

    def __init__(self, study: Study, *, as_json: bool) -> None:
        self._study = study
        self._json = as_json
        self._bar: Bar | None = None
        self._notes: list[News] = []

    def begin(self, worker: Worker) -> None:
        table = from_optuna(worker.shared.study)
        self._bar = Bar(self._study, table, worker.trials, draw=not self._json)
        for note in self._study.notes:
            self._say(said(note))
        self._say(
            words.BEGINS(
                name=self._study.name,
                trials=worker.trials,
                command=shlex.join(self._study.command),
                workers=worker.workers,
                storage=shown(worker.place.storage),
            )
        )
        done = sum(trial.state in ("complete", "pruned") for trial in table.trials)
        if done:
            self._say(words.GOES_ON(done=done, trials=worker.trials))
        for news in self._notes:
            self.hear(news)

    def hear(self, news: News) -> None:
        if self._bar is None:
            self._notes.append(news)
            return
        is_best = self._bar.take_in(news)
        if news.kind == "note":
            self._say(said(news.text))
        elif news.kind == "stale":
            self._say(words.STALE(number=news.number))
        elif news.kind == "ended":
            self._say(self._ended(news, is_best=is_best))

    def _ended(self, news: News, *, is_best: bool) -> str:
        outcome = news.outcome
        assert outcome is not None
        values = values_text(news.values)
        if outcome.state == "COMPLETE":
            numbers = " ".join(f"{value:.6g}" for value in outcome.values or ())
            target = " ".join(one.name for one in self._study.targets)
            best = words.IS_BEST() if is_best else ""
            return words.COMPLETE(number=news.number, target=target, value=numbers, values=values, best=best)
        if outcome.state == "PRUNED":
            ended = words.ENDED[outcome.ended]() if outcome.ended in words.ENDED else outcome.ended
            return words.PRUNED(number=news.number, ended=ended, why=said(outcome.why), values=values)
        return words.FAILED(number=news.number, why=said(outcome.why), values=values)

    def _say(self, text: str) -> None:
        click.echo(f"misstep: {text}", err=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
