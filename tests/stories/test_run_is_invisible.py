"""The command's own business stays its own: exit code, streams, signals, Ctrl-C, its sitecustomize, its errors."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import venv
from pathlib import Path

import pytest
from story import MISSTEP, SECONDS, SOURCE, TRAINING, RunCommand, RunStory, Write, environment_of_a_user, updates

pytestmark = pytest.mark.story

ROWS, COLUMNS = 24, 100

CATCHING = """
import signal, sys, time

def received(number, frame):
    print("received", signal.Signals(number).name, flush=True)
    sys.exit(9)

for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), received)
print("ready", flush=True)
while True:
    signal.pause()
"""


def start(folder: Path, *command: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [*MISSTEP, "run", *command],
        cwd=folder,
        env=environment_of_a_user(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_the_exit_code_is_the_commands(run_story: RunStory) -> None:
    result = run_story("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(7)")
    assert (result.exit, result.out) == (7, "out\n")
    assert result.err.startswith("err\n")


def test_an_argument_of_the_command_is_never_taken_for_ours(run_story: RunStory) -> None:
    result = run_story("import sys\nprint(sys.argv[1:])", args=["--level", "--", "-q", "a b", "--help"])
    assert result.out == "['--level', '--', '-q', 'a b', '--help']\n"


def test_two_dashes_end_our_options(misstep_command: RunCommand) -> None:
    result = misstep_command("run", "-q", "--", sys.executable, "-c", "print(1)")
    assert (result.exit, result.out, result.err) == (0, "1\n", "")


def test_standard_input_is_the_commands(folder: Path) -> None:
    done = subprocess.run(
        [*MISSTEP, "run", "cat"],
        cwd=folder,
        env=environment_of_a_user(),
        input="to the cat",
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (0, "to the cat")


def test_a_command_that_does_not_exist_is_said_plainly(misstep_command: RunCommand) -> None:
    result = misstep_command("run", "pyhton", "train.py")
    assert (result.exit, result.out, result.err) == (127, "", "misstep: pyhton: command not found\n")
    assert not (result.folder / "missteps").exists()


def test_a_script_without_python_in_front_gets_the_hint(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", TRAINING)
    result = misstep_command("run", "./train.py")
    assert result.exit == 126
    assert "misstep run python ./train.py" in result.err


def test_a_syntax_error_is_told_by_python_itself(run_story: RunStory) -> None:
    result = run_story("def f(:\n    pass")
    assert result.exit == 1
    assert "SyntaxError" in result.err
    assert "misstep: no training was seen" in result.err
    assert not result.trained


def test_a_script_that_only_imports_torch_leaves_no_run(run_story: RunStory) -> None:
    result = run_story("import torch\nprint(torch.ones(2).sum().item())")
    assert (result.exit, result.out) == (0, "2.0\n")
    assert "misstep: no training was seen" in result.err


def test_an_exception_in_training_keeps_its_traceback_and_the_run_failed(run_story: RunStory) -> None:
    result = run_story(TRAINING + "train(2)\nraise ValueError('mine')")
    assert result.exit == 1
    assert "ValueError: mine" in result.err
    assert result.run.state == "failed"
    assert updates(result.run) == [1, 2]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"])
def test_a_signal_sent_to_misstep_reaches_the_command_once(write: Write, folder: Path, name: str) -> None:
    write("catch.py", CATCHING)
    process = start(folder, "-q", sys.executable, "catch.py", name)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out, err) == (9, f"received {name}\n", "")


def test_death_by_a_signal_is_told_as_a_shell_tells_it(misstep_command: RunCommand) -> None:
    result = misstep_command("run", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert result.exit == 128 + signal.SIGKILL
    assert "killed by SIGKILL" in result.err


def test_a_signal_ignored_before_stays_ignored_in_the_command(folder: Path) -> None:
    """nohup misstep run …: hanging up must not reach the training."""
    code = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    done = subprocess.run(
        ["nohup", *MISSTEP, "run", "-q", sys.executable, "-c", code],
        cwd=folder,
        env=environment_of_a_user(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.stdout == "True\n"


class Terminal:
    """A command in a terminal of its own, and the keyboard to it."""

    def __init__(self, folder: Path, *command: str, **more: str) -> None:
        self.text = ""
        self.pid, self._keyboard = pty.fork()
        if self.pid == 0:
            termios.tcsetwinsize(0, (ROWS, COLUMNS))
            os.chdir(folder)
            os.execve(sys.executable, [*MISSTEP, *command], environment_of_a_user(TERM="xterm", **more))

    def read_until(self, text: str) -> None:
        while text not in self.text:
            self._read()

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    def wait(self) -> int:
        """Read to the end; the exit code."""
        try:
            while True:
                self._read()
        except OSError:  # how Linux says that the other side of a terminal is gone
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self._keyboard)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> None:
        ready, _, _ = select.select([self._keyboard], [], [], SECONDS)
        assert ready, f"nothing more came after {self.text!r}"
        self.text += os.read(self._keyboard, 4096).decode("utf-8", "replace")


def test_ctrl_c_reaches_the_command_once_and_the_run_is_kept(write: Write, folder: Path) -> None:
    write(
        "train.py",
        TRAINING
        + """
import time
try:
    train(2)
    print("ready", flush=True)
    while True:
        time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    train(1)   # a clean-up that a second interrupt would cut short
    print("cleaned up", flush=True)
    raise
""",
    )
    terminal = Terminal(folder, "run", sys.executable, "train.py")
    terminal.read_until("ready")
    terminal.press(b"\x03")
    assert terminal.wait() == 128 + signal.SIGINT
    assert terminal.text.index("interrupted") < terminal.text.index("cleaned up")
    assert terminal.text.count("KeyboardInterrupt") == 1
    assert "misstep: no NaN or Inf was seen in 3 steps." in terminal.text


def test_the_status_line_lives_in_its_own_row_and_gives_it_back(write: Write, folder: Path) -> None:
    write("train.py", TRAINING + "train(2)\nprint('trained', flush=True)\ninput()")
    terminal = Terminal(folder, "run", sys.executable, "train.py")
    terminal.read_until("step 2 · loss")
    terminal.press(b"\n")
    assert terminal.wait() == 0
    only_above = terminal.text.index(f"\x1b[1;{ROWS - 1}r")
    drawn_below = terminal.text.index(f"\x1b[{ROWS};1H")
    whole_again = terminal.text.index("\x1b[r")
    report = terminal.text.index("no NaN or Inf was seen in 2 steps")
    assert only_above < drawn_below < whole_again < report


def test_the_users_own_sitecustomize_runs_too(write: Write, folder: Path, misstep_command: RunCommand) -> None:
    write("mine/sitecustomize.py", "import sys\nsys.mine = __file__\n")
    code = "import sys, sitecustomize; print(sys.mine == sitecustomize.__file__, 'shim' in str(sys.path))"
    environment = {"PYTHONPATH": f"{folder / 'mine'}{os.pathsep}{SOURCE}"}
    result = misstep_command("run", "-q", sys.executable, "-c", code, environment=environment)
    assert (result.exit, result.out, result.err) == (0, "True False\n", "")


def test_an_error_in_the_users_sitecustomize_is_reported_as_ever(
    write: Write, folder: Path, misstep_command: RunCommand
) -> None:
    write("mine/sitecustomize.py", "raise RuntimeError('mine')\n")
    environment = {"PYTHONPATH": f"{folder / 'mine'}{os.pathsep}{SOURCE}"}
    plain = subprocess.run(
        [sys.executable, "-c", "print(1)"],
        env=environment_of_a_user(**environment),
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    result = misstep_command("run", "-q", sys.executable, "-c", "print(1)", environment=environment)
    # Twice: misstep is a Python program too, and has the same sitecustomize.
    assert (result.exit, result.out, result.err) == (plain.returncode, plain.stdout, 2 * plain.stderr)


@pytest.mark.parametrize("flag", ["-E", "-I", "-S"])
def test_a_python_that_ignores_the_environment_runs_unharmed(run_story: RunStory, flag: str) -> None:
    result = run_story("print('alone')", python=[flag])
    assert (result.exit, result.out) == (0, "alone\n")
    assert f"python {flag} ignores the environment" in result.err


def test_an_environment_without_misstep_finds_it_and_nothing_else_of_ours(
    write: Write, folder: Path, misstep_command: RunCommand
) -> None:
    """The trainee's interpreter is another one: misstep is lent to it, its missing packages stay missing."""
    venv.create(folder / "other", with_pip=False, symlinks=True)
    write("torch.py", "")
    write(
        "train.py",
        """
        import importlib.util
        for name in ("misstep", "click", "numpy", "pytest"):
            print(name, importlib.util.find_spec(name) is not None)
        import torch
        print("unharmed")
        """,
    )
    launch = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); from misstep.cli import main; sys.exit(main())"
    environment = {name: value for name, value in environment_of_a_user().items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", launch, "run", str(folder / "other" / "bin" / "python"), "train.py"],
        cwd=folder,
        env={**environment, "MISSTEP_STRICT": "0"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0
    assert done.stdout == "misstep True\nclick False\nnumpy False\npytest False\nunharmed\n"
    assert done.stderr.splitlines()[0].startswith("misstep: this process is not watched: ")
    assert "has no numpy (pip install numpy)" in done.stderr.splitlines()[0]


def test_a_folder_that_cannot_be_written_is_said_once_and_the_command_runs(
    write: Write, misstep_command: RunCommand
) -> None:
    write("missteps", "a file where the folder should be")
    result = misstep_command("run", sys.executable, "-c", "print('ran')")
    assert (result.exit, result.out) == (0, "ran\n")
    assert result.err == ("misstep: cannot record in missteps: Not a directory; choose another directory with --dir.\n")
