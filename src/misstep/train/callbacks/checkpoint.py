"""Callbacks that write the network to disk: regularly, as a backup to resume from, or when asked to stop."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Literal

from misstep.errors import TrainError
from misstep.train.callbacks.base import Callback, CallbackParams, RunContext
from misstep.train.checkpoint import load_checkpoint, save_checkpoint
from misstep.train.data import columns_of
from misstep.train.steps import framework_for

log = logging.getLogger("misstep.train")


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """When ModelCheckpoint writes and how many files it keeps.

    CheckpointConfig(save_checkpoint_steps=100)                             # every 100 steps, the last 5 files
    CheckpointConfig(save_checkpoint_steps=None, save_checkpoint_seconds=600)       # every 10 minutes
    CheckpointConfig(keep_checkpoint_max=None, keep_checkpoint_per_n_minutes=60)    # one file an hour
    CheckpointConfig(exception_save=True, async_save=True, format="safetensors")

    Steps win over seconds, and a maximum over minutes. `append_info` adds "epoch_num", "step_num" or a dictionary of
    numbers to every file; `saved_network` is written instead of the one that trains.
    """

    save_checkpoint_steps: int | None = 1
    save_checkpoint_seconds: int | None = 0
    keep_checkpoint_max: int | None = 5
    keep_checkpoint_per_n_minutes: int | None = 0
    integrated_save: bool = True
    async_save: bool = False
    saved_network: Any = None
    append_info: Sequence[Any] | None = None
    enc_key: bytes | None = None
    enc_mode: str = "AES-GCM"
    exception_save: bool = False
    crc_check: bool = False
    remove_redundancy: bool = False
    format: Literal["ckpt", "pt", "safetensors"] | None = None

    def __post_init__(self) -> None:
        for name in (
            "save_checkpoint_steps",
            "save_checkpoint_seconds",
            "keep_checkpoint_max",
            "keep_checkpoint_per_n_minutes",
        ):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ValueError(f"{name} must be a whole number or None, got {value!r}")
        if not self.save_checkpoint_steps and not self.save_checkpoint_seconds:
            raise ValueError("save_checkpoint_steps and save_checkpoint_seconds cannot both be empty: nothing is saved")
        if not self.keep_checkpoint_max and not self.keep_checkpoint_per_n_minutes:
            raise ValueError("keep_checkpoint_max and keep_checkpoint_per_n_minutes cannot both be empty")
        if self.enc_key is not None:
            raise TrainError("encrypted checkpoints are not written; encrypt the directory instead")
        if self.format not in (None, "ckpt", "pt", "safetensors"):
            raise ValueError(f"format must be 'ckpt', 'pt' or 'safetensors', got {self.format!r}")


class ModelCheckpoint(Callback):
    """Writes the network to `{directory}/{prefix}-{epoch}_{step}.ckpt` (`.pt` for torch) as the config says.

    The last step is always written. When files of that prefix exist already, they are left alone and the prefix
    becomes `{prefix}_1`.
    """

    def __init__(
        self,
        prefix: str = "CKP",
        directory: str | os.PathLike[str] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if not isinstance(prefix, str) or "/" in prefix or not prefix:
            raise ValueError(f"prefix must be the beginning of a file name, got {prefix!r}")
        self._prefix = prefix
        self._directory = Path(directory) if directory is not None else Path.cwd()
        self._config = config or CheckpointConfig()
        self._kept: list[tuple[Path, float]] = []
        self._passing: Path | None = None
        self._writing: threading.Thread | None = None
        self._saved_step = 0
        self._saved_at = time.monotonic()
        self._epoch_started_at_step = 0
        self._params: CallbackParams | None = None
        self.latest_ckpt_file_name = ""

    def on_train_begin(self, run_context: RunContext) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._prefix = _free_prefix(self._directory, self._prefix)
        self._kept, self._passing = [], None
        self._saved_step = 0
        self._saved_at = time.monotonic()
        self._params = run_context.original_args()

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        self._epoch_started_at_step = run_context.original_args().cur_step_num

    def on_train_step_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if self._config.save_checkpoint_steps:
            due = params.cur_step_num >= self._saved_step + self._config.save_checkpoint_steps
        else:
            due = time.monotonic() - self._saved_at >= (self._config.save_checkpoint_seconds or 0)
        if due:
            self._save(params)

    def on_train_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if params.cur_step_num and params.cur_step_num != self._saved_step:
            self._save(params)
        self._wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if error is not None and self._config.exception_save and self._params is not None:
            self._save(self._params, suffix="_breakpoint")
        self._wait()
        self._params = None
        return None

    def _save(self, params: CallbackParams, suffix: str = "") -> None:
        self._wait()
        framework = framework_for(params.network)
        ending = f".{self._config.format}" if self._config.format else framework.suffix
        step = params.cur_step_num - self._epoch_started_at_step
        path = self._directory / f"{self._prefix}-{params.cur_epoch_num}_{step}{suffix}{ending}"
        network = self._config.saved_network or params.train_network
        self._writing = save_checkpoint(
            network, path, append_dict=self._append(params), async_save=self._config.async_save and not suffix
        )
        self._saved_step = params.cur_step_num
        self._saved_at = time.monotonic()
        params.last_save_ckpt_step = params.cur_step_num
        params.latest_ckpt_file = self.latest_ckpt_file_name = str(path)
        self._forget_old(path)

    def _append(self, params: CallbackParams) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        for item in self._config.append_info or ():
            if isinstance(item, dict):
                extra.update(item)
            elif item in ("epoch_num", "step_num"):
                extra[item] = params[f"cur_{item}"]
            else:
                raise TrainError(f"append_info takes 'epoch_num', 'step_num' or a dictionary, got {item!r}")
        return extra

    def _forget_old(self, newest: Path) -> None:
        now = time.monotonic()
        if self._config.keep_checkpoint_max:
            self._kept.append((newest, now))
            while len(self._kept) > self._config.keep_checkpoint_max:
                self._kept.pop(0)[0].unlink(missing_ok=True)
        else:
            # The newest file goes when the next comes, unless it was the one to keep for its n minutes.
            interval = (self._config.keep_checkpoint_per_n_minutes or 1) * 60
            if self._passing is not None:
                self._passing.unlink(missing_ok=True)
            due = not self._kept or now - self._kept[-1][1] >= interval
            self._passing = None if due else newest
            if due:
                self._kept.append((newest, now))

    def _wait(self) -> None:
        if self._writing is not None:
            self._writing.join()
            self._writing = None


class BackupAndRestore(Callback):
    """Backs network and optimizer up every `save_freq` epochs, and takes up from the backup if training was cut short.

    The backup is removed when training ends by itself, unless `delete_checkpoint=False`.
    """

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: Literal["epoch"] | int = "epoch",
        delete_checkpoint: bool = True,
    ) -> None:
        self.save_freq = 1 if save_freq == "epoch" else int(save_freq)
        if self.save_freq < 1:
            raise ValueError(f"save_freq must be 'epoch' or a number of epochs, got {save_freq!r}")
        self.backup_dir = Path(backup_dir)
        self.delete_checkpoint = delete_checkpoint

    def backup_file(self, params: CallbackParams) -> Path:
        """Where the backup of this run lies."""
        return self.backup_dir / f"backup{framework_for(params.network).suffix}"

    def on_train_begin(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        self.backup_dir.mkdir(parents=True, exist_ok=True)
        file = self.backup_file(params)
        if file.exists():
            log.info("taking up training from %s", file)
            framework_for(params.network).load_training(params.network, params.optimizer, file)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        params = run_context.original_args()
        if params.cur_epoch_num % self.save_freq == 0:
            file = self.backup_file(params)
            partial = file.with_name(f".partial-{file.name}")
            framework_for(params.network).save_training(params.network, params.optimizer, partial)
            os.replace(partial, file)  # a crash while writing must not cost the backup before

    def on_train_end(self, run_context: RunContext) -> None:
        if self.delete_checkpoint:
            self.backup_file(run_context.original_args()).unlink(missing_ok=True)


class OnRequestExit(Callback):
    """Ends training properly when a signal arrives or a file asks for it: the step is finished, the network saved.

    The next run with the same file name begins from what was saved. `config_file` is JSON; `{"GracefulExit": 1}` in
    it asks for the end. `save_mindir` exports the network too: as MINDIR, or as a torch.export program.
    """

    def __init__(
        self,
        save_ckpt: bool = True,
        save_mindir: bool = True,
        file_name: str = "Net",
        directory: str | os.PathLike[str] = "./",
        config_file: str | os.PathLike[str] | None = None,
        sig: int = signal.SIGTERM,
    ) -> None:
        if sig == getattr(signal, "SIGKILL", None):
            raise ValueError("SIGKILL cannot be caught, so it cannot ask for an orderly end; use SIGTERM")
        self.save_ckpt = save_ckpt
        self.save_mindir = save_mindir
        self.sig = sig
        self.exit = False
        self._directory = Path(directory) / f"rank_{os.environ.get('RANK_ID', os.environ.get('RANK', '0'))}"
        self._name = file_name
        self._config_file = None if config_file is None else Path(config_file)
        self._handler_before: Any = None
        self._listening = False

    def on_train_begin(self, run_context: RunContext) -> None:
        self._begin(run_context.original_args(), "train")

    def on_train_step_end(self, run_context: RunContext) -> None:
        if self.exit or self._file_says_so():
            self.exit = True
            run_context.request_stop()

    def on_train_end(self, run_context: RunContext) -> None:
        self._finish(run_context.original_args(), "train")

    def on_eval_begin(self, run_context: RunContext) -> None:
        if not self._listening:
            self._begin(run_context.original_args(), "eval")

    def on_eval_step_end(self, run_context: RunContext) -> None:
        if self.exit:
            run_context.request_stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._listening:
            signal.signal(self.sig, self._handler_before)
            self._listening = False
        return None

    def file(self, params: CallbackParams, phase: str = "train") -> Path:
        """Where the network is saved."""
        return self._directory / f"{self._name}_{phase}{framework_for(params.network).suffix}"

    def _begin(self, params: CallbackParams, phase: str) -> None:
        self.exit = False
        if threading.current_thread() is threading.main_thread():
            self._handler_before = signal.signal(self.sig, self._asked)
            self._listening = True
        else:
            log.warning("OnRequestExit: signals reach the main thread only; training runs in another one")
        file = self.file(params, "train")
        if self.save_ckpt and file.exists():
            load_checkpoint(file, net=params.network)

    def _finish(self, params: CallbackParams, phase: str) -> None:
        if not self.exit:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self.file(params, phase)
        if self.save_ckpt:
            save_checkpoint(params.train_network, file)
        if self.save_mindir:
            inputs = columns_of(params.train_dataset_element)
            inputs = inputs[:1] if params.loss_fn is not None else inputs
            try:
                framework_for(params.network).export(params.network, inputs, file)
            except Exception as failed:  # the weights are safe already; an export must not spoil the orderly end
                log.warning("OnRequestExit could not export the network: %s", str(failed).splitlines()[0])

    def _file_says_so(self) -> bool:
        if self._config_file is None or not self._config_file.exists():
            return False
        try:
            return bool(json.loads(self._config_file.read_text("utf-8")).get("GracefulExit") == 1)
        except (ValueError, AttributeError):
            log.warning("OnRequestExit: %s is not a JSON object", self._config_file)
            return False

    def _asked(self, signum: int, frame: FrameType | None) -> None:
        self.exit = True


def _free_prefix(directory: Path, prefix: str) -> str:
    taken = {path.name.rsplit("-", 1)[0] for path in directory.glob(f"{prefix}*-*") if path.is_file()}
    if prefix not in taken:
        return prefix
    number = 1
    while f"{prefix}_{number}" in taken:
        number += 1
    return f"{prefix}_{number}"
