"""However a training is launched, misstep is in the processes that train, and only there."""

from __future__ import annotations

import sys

import pytest
from story import TRAINING, RunCommand, RunStory, Write, updates

pytestmark = pytest.mark.story


def test_a_script_is_watched_without_an_edit(run_story: RunStory) -> None:
    result = run_story(TRAINING + "train(3)\nprint('done')")
    assert (result.exit, result.out) == (0, "done\n")
    assert updates(result.run) == [1, 2, 3]
    assert result.run.state == "finished"
    assert "misstep show last" in result.err


def test_a_module_started_with_m_is_watched(write: Write, misstep_command: RunCommand) -> None:
    write("pkg/__init__.py", "")
    write("pkg/__main__.py", TRAINING + "train(2)")
    result = misstep_command("run", sys.executable, "-m", "pkg")
    assert result.exit == 0
    assert updates(result.run) == [1, 2]


def test_a_shell_script_without_a_first_line_is_watched(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", TRAINING + "train(2)")
    write("go.sh", f"echo begin\n{sys.executable} train.py\necho end\n").chmod(0o755)
    result = misstep_command("run", "./go.sh")
    assert (result.exit, result.out) == (0, "begin\nend\n")
    assert updates(result.run) == [1, 2]


def test_every_rank_of_torchrun_has_its_own_directory_and_the_bad_one_is_named(
    write: Write, misstep_command: RunCommand
) -> None:
    write(
        "train.py",
        """
        import os
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        torch.manual_seed(rank)
        model = DistributedDataParallel(torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(1, 5):
            x = torch.randn(8, 4)
            if rank == 1 and step == 3:
                x = torch.log(x - 100)
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        dist.destroy_process_group()
        """,
    )
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--standalone")
    result = misstep_command("run", "--level", "op", sys.executable, *launcher, "train.py")
    assert result.exit == 0, result.err
    run = result.run
    assert run.ranks == (0, 1)
    assert run.verdict is not None
    assert (run.verdict.rank, run.verdict.step, run.verdict.kind) == (1, 3, "nan")
    assert "rank 1" in result.err


def test_processes_of_mp_spawn_are_watched_each_for_itself(run_story: RunStory) -> None:
    script = (
        TRAINING
        + """
def work(index):
    train(2)

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=2)
"""
    )
    result = run_story(script)
    assert result.exit == 0
    assert len(result.run.ranks) == 2
    assert [updates(result.run, rank) for rank in result.run.ranks] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.slow
def test_workers_of_a_dataloader_leave_no_trace(run_story: RunStory, start: str) -> None:
    script = (
        TRAINING
        + f"""
class Numbers(torch.utils.data.Dataset):
    def __init__(self):
        self.features = torch.nn.Linear(4, 4)

    def __len__(self):
        return 32

    def __getitem__(self, index):
        return self.features(torch.randn(4)).detach()   # a forward with gradients, in the worker

if __name__ == "__main__":
    # Spawned workers import torch, three seconds each: they stay for both epochs.
    options = dict(num_workers=2, multiprocessing_context="{start}", persistent_workers={start == "spawn"})
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=8, **options)
    for epoch in range(2):
        for x in loader:
            loss = model(x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
    )
    result = run_story(script)
    assert result.exit == 0, result.err
    assert result.run.ranks == (0,)
    assert updates(result.run) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_two_trainings_of_one_shell_script_are_both_kept(write: Write, misstep_command: RunCommand) -> None:
    write("train.py", TRAINING + "import sys\ntrain(int(sys.argv[1]))")
    result = misstep_command("run", "sh", "-c", f"{sys.executable} train.py 2 && {sys.executable} train.py 3")
    assert result.exit == 0
    assert [updates(result.run, rank) for rank in result.run.ranks] == [[1, 2], [1, 2, 3]]
