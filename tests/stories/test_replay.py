"""With only the guard on, a bad step explains itself: run again, it names operator, line, phase and samples."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from story import MISSTEP, SECONDS, RunCommand, RunStory, Write, environment_of_a_user

from misstep.store.reading.reader import open_run

pytestmark = pytest.mark.story

TRAIN = """
    import hashlib
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Reciprocal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return gradient / (x - x)  # planted in backward

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm, self.drop = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.1)

        def forward(self, x, wrong):
            y = self.drop(self.norm(self.fc(x)))
            if wrong:
                {network}
            return y

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(Block() for _ in range(3))
            self.head = nn.Linear(8, 4)

        def forward(self, x, wrong=False):
            for number, block in enumerate(self.blocks):
                x = block(x, wrong and number == 1)
            return self.head(x)

    class Careless(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure=None):
            super().step(closure)
            if wrong:
                weight = self.param_groups[0]["params"][2]
                weight.copy_((weight - weight) / (weight - weight))  # planted

    torch.manual_seed(0)
    net = Net()
    optimizer = {optimizer}
    for number in range(1, 6):
        wrong = number == 4
        x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
        mask = torch.ones(16)
        if wrong:
            {batch}
        out = net(x, wrong)
        loss = F.cross_entropy(out, y)
        if wrong:
            {loss}
        optimizer.zero_grad()
        loss.backward()
        if wrong:
            {update}
        optimizer.step()  # planted in the optimizer
    digest = hashlib.sha256()
    for tensor in [*net.state_dict().values(), torch.get_rng_state()]:
        digest.update(tensor.numpy().tobytes())
    print(digest.hexdigest())
"""

SGD = "torch.optim.SGD(net.parameters(), lr=0.1)"
ADAM = "torch.optim.Adam(net.parameters(), lr=0.1, {})"


@dataclass(frozen=True)
class Fault:
    phase: str
    op: str
    network: str = "pass"
    batch: str = "pass"
    loss: str = "pass"
    update: str = "pass"
    optimizer: str = SGD
    line: str = "# planted"

    def script(self) -> str:
        return TRAIN.format(
            network=self.network, batch=self.batch, loss=self.loss, update=self.update, optimizer=self.optimizer
        )


IN_OPTIMIZER = "# planted in the optimizer"
NO_SECOND_MOMENT = (
    "[s['exp_avg_sq'].zero_() for s in optimizer.state.values()];"
    " net.zero_grad(set_to_none=False); optimizer.param_groups[0]['eps'] = 0"
)
NEGATIVE_SECOND_MOMENT = "[s['exp_avg_sq'].fill_(-1.0) for s in optimizer.state.values()]"
ENDLESS_RATE = "optimizer.param_groups[0]['lr'] = float('inf')"

FAULTS = {
    "log of a negative": Fault("forward", "aten.log", network="y = torch.log(y)  # planted"),
    "root of a negative": Fault("forward", "aten.sqrt", network="y = torch.sqrt(y)  # planted"),
    "exp overflows, hidden by tanh": Fault(
        "forward", "aten.exp", network="y = torch.tanh(torch.exp(y * 1e4))  # planted"
    ),
    "zero by zero": Fault("forward", "aten.div", network="y = (y - y) / (y - y)  # planted"),
    "overflow in half precision": Fault("forward", "aten.mul", network="y = (y.half() * 6e4 * 6e4).float()  # planted"),
    "a row masked out": Fault(
        "forward",
        "aten._softmax",
        network="y = torch.softmax(y.masked_fill(torch.ones_like(y) > 0, -torch.inf), 1)  # planted",
    ),
    "a matrix product overflows": Fault("forward", "aten.mm", network="y = y @ (self.fc.weight * 3e38)  # planted"),
    "root of zero, bad only in backward": Fault("backward", "", network="y = y + torch.sqrt(y - y)  # planted"),
    "where hides a root": Fault(
        "backward", "", network="y = torch.where(y > 0, torch.sqrt(y.abs() * 0), y)  # planted"
    ),
    "arc cosine at one": Fault("backward", "", network="y = y + torch.acos(1 - (y - y))  # planted"),
    "a custom function's backward": Fault(
        "backward", "aten.div", network="y = Reciprocal.apply(y)", line="# planted in backward"
    ),
    "log of zero in the loss": Fault("loss", "aten.log", loss="loss = loss - torch.log(out.sum() * 0)  # planted"),
    "mean over nothing in the loss": Fault(
        "loss", "aten.div", loss="loss = loss + (out.sum() * 0) / (mask.sum() - 16)  # planted"
    ),
    "root of zero in the loss": Fault("backward", "", loss="loss = loss + torch.sqrt(out * 0).sum()  # planted"),
    "NaN in the batch": Fault(
        "input", "aten.addmm", batch="x[3, 2] = torch.nan", line="y = self.drop(self.norm(self.fc(x)))"
    ),
    "Inf in the weights of the samples": Fault(
        "input",
        "",
        batch="mask[5] = torch.inf",
        loss="loss = (F.cross_entropy(out, y, reduction='none') * mask).mean()  # planted",
    ),
    "a learning rate of Inf": Fault("optimizer", "", update=ENDLESS_RATE, line=IN_OPTIMIZER),
    "Adam without eps, foreach": Fault(
        "optimizer", "", update=NO_SECOND_MOMENT, optimizer=ADAM.format("foreach=True"), line=IN_OPTIMIZER
    ),
    "Adam without eps, one by one": Fault(
        "optimizer", "", update=NO_SECOND_MOMENT, optimizer=ADAM.format("foreach=False"), line=IN_OPTIMIZER
    ),
    "Adam with a negative second moment, fused": Fault(
        "optimizer",
        "aten._fused_adam_",
        update=NEGATIVE_SECOND_MOMENT,
        optimizer=ADAM.format("fused=True"),
        line=IN_OPTIMIZER,
    ),
    "an optimizer of one's own": Fault(
        "optimizer", "aten.div", optimizer="Careless(net.parameters(), lr=0.1)", line="# planted"
    ),
}


def shown(misstep_command: RunCommand) -> dict:
    result = misstep_command("show", "last", "--json")
    assert result.exit == 0, result.err
    return json.loads(result.out)


def untouched(folder: Path, script: str = "train.py") -> str:
    """What the same script prints without misstep."""
    done = subprocess.run(
        [sys.executable, script],
        cwd=folder,
        env=environment_of_a_user(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_by_operator_line_phase_and_step_with_only_the_guard_on(
    name: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    fault = FAULTS[name]
    result = run_story(fault.script(), "--level", "guard")
    assert result.exit == 0, result.err
    verdict = shown(misstep_command)["verdict"]
    assert (verdict["step"], verdict["phase"], verdict["precision"]) == (4, fault.phase, "operator")
    assert not fault.op or verdict["op"] == fault.op
    assert verdict["source"]["file"] == "train.py"
    assert verdict["source"]["code"].endswith(fault.line)
    if fault.phase != "optimizer":
        assert verdict["exact"] == "exact"
    for fact in (*verdict["outputs"], *verdict["inputs"]):
        values = result.run.tensor(fact["address"])
        assert (list(values.shape), int(np.isnan(values).sum())) == (fact["shape"], fact["nan"])
        assert int(np.isinf(values).sum()) == fact["inf"]
    assert result.out == untouched(result.folder)


SAMPLES = """
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.data import DataLoader, Dataset

    GUILTY = {guilty}

    class Numbers(Dataset):
        def __init__(self):
            torch.manual_seed(1)
            self.x, self.y = torch.randn(320, 8), torch.randint(0, 4, (320,))
            self.files = [f"pictures/{{number}}.png" for number in range(320)]
            for number in GUILTY:
                self.x[number] = {value}

        def __len__(self):
            return 320

        def __getitem__(self, index):
            return self.x[index], self.y[index]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.norm, self.head = nn.Linear(8, 8), {norm}, nn.Linear(8, 4)

        def forward(self, x):
            return self.head(F.relu(self.norm(self.fc({forward}))))

    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for x, y in DataLoader(Numbers(), batch_size=64, num_workers={workers}):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

BATCH_NORM, LAYER_NORM = "nn.BatchNorm1d(8)", "nn.LayerNorm(8)"
SINGLE = {
    "NaN in the first sample": (192, "torch.nan", LAYER_NORM, "x", 0),
    "NaN in the last sample": (255, "torch.nan", LAYER_NORM, "x", 0),
    "NaN spread by batch norm": (209, "torch.nan", BATCH_NORM, "x", 0),
    "Inf spread by batch norm": (230, "torch.inf", BATCH_NORM, "x", 0),
    "a negative under a root": (200, "-10.0", BATCH_NORM, "torch.sqrt(x + 9)", 0),
    "a zero under a logarithm": (221, "0.0", LAYER_NORM, "torch.log(x.abs())", 0),
    "a zero that divides": (222, "0.0", BATCH_NORM, "x / x.norm(dim=1, keepdim=True)", 0),
    "an overflow of exp": (193, "200.0", LAYER_NORM, "torch.exp(x)", 0),
    "a square that overflows": (254, "1e30", BATCH_NORM, "x * x", 0),
    "a sample from a worker": (240, "torch.nan", BATCH_NORM, "x", 2),
}  # fmt: skip
"""(index in the dataset, its value, the network's normalisation, what the network does to its input, workers)"""


@pytest.mark.parametrize("name", SINGLE)
def test_the_guilty_sample_is_found_among_sixty_four(
    name: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    index, value, norm, forward, workers = SINGLE[name]
    script = SAMPLES.format(guilty=[index], value=value, norm=norm, forward=forward, workers=workers)
    result = run_story(script, "--level", "guard")
    assert result.exit == 0, result.err
    (event,) = result.run.events("samples")
    facts = event.facts
    assert (facts["step"], facts["samples"], facts["dataset_indices"]) == (4, [index - 192], [index])
    assert facts["names"] == [f"pictures/{index}.png"]
    assert facts["runs"] <= 2 * 6 + 4
    assert f"sample {index - 192} of the 64" in shown(misstep_command)["verdict"]["note"]
    kept = result.run.tensor(f"sample.{index - 192}:input@4")
    assert kept.shape == (8,)


def test_three_guilty_samples_are_all_named(run_story: RunStory) -> None:
    script = SAMPLES.format(guilty=[194, 209, 250], value="torch.nan", norm=BATCH_NORM, forward="x", workers=0)
    (event,) = run_story(script, "--level", "guard").run.events("samples")
    assert event.facts["samples"] == [2, 17, 58]


SCALER = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale={scale}, growth_interval=1000)
    for number in range(1, {steps} + 1):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = net(torch.randn(16, 8)).square().mean()
        if number % {every} == 0:
            loss = loss * 1e38  # planted
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


def test_steps_that_a_gradient_scaler_skips_raise_no_alarm_and_say_which_operator_overflowed(
    run_story: RunStory, misstep_command: RunCommand
) -> None:
    result = run_story(SCALER.format(scale="2.0**10", steps=12, every=6), "--level", "guard")
    assert result.exit == 0, result.err
    facts = shown(misstep_command)
    assert facts["verdict"] is None
    assert [hit for hit in facts["hits"] if hit["severity"] == "error"] == []
    assert facts["findings"] == []
    skipped = facts["skipped"]
    assert [(one["step"], one["loss_scale"]) for one in skipped] == [(6, 1024.0), (11, 512.0)]
    told = misstep_command("show", "last").out
    assert "2 of 12 updates skipped for an overflow" in told
    assert "# planted" in told or "backward" in told
    scales = [step["loss_scale"] for step in facts["steps"] if step["number"]]
    assert scales == [1024.0] * 5 + [512.0] * 5
    assert all("# planted" in one["source"] or "backward" in one["source"] for one in skipped)


def test_a_gradient_scaler_that_skips_too_often_is_told(run_story: RunStory) -> None:
    result = run_story(SCALER.format(scale="2.0**10", steps=60, every=2), "--level", "guard")
    assert [finding.rule for finding in result.run.findings] == ["loss_scale_skips"]
    (hit,) = [hit for hit in result.run.hits() if hit.condition == "loss_scale_skips"]
    assert (hit.severity, hit.reason) == ("warning", result.run.findings[0].title)
    assert result.run.verdict is None


@pytest.mark.parametrize("name", ["log of a negative", "root of zero in the loss", "NaN in the batch"])
def test_a_capsule_holds_state_and_batch_but_not_the_branches_of_the_program(
    name: str, run_story: RunStory, misstep_command: RunCommand
) -> None:
    first = run_story(FAULTS[name].script(), "--level", "guard")
    assert first.exit == 0, first.err
    again = misstep_command("replay", f"{first.run.name}@4", "--json")
    facts = json.loads(again.out)
    if name == "NaN in the batch":
        assert (again.exit, facts["exact"]) == (0, "exact"), again.err
        assert (facts["verdict"]["step"], facts["verdict"]["phase"]) == (4, "input")
    else:
        # The fault is a branch of the loop at its fourth step, which a fresh process has not reached.
        assert again.exit == 3
        assert facts["exact"].startswith(("not exact", "loss only"))


def test_a_replay_runs_where_the_run_did_names_its_own_and_fails_when_nothing_trains(
    run_story: RunStory, write: Write, tmp_path: Path
) -> None:
    first = run_story(FAULTS["NaN in the batch"].script(), "--level", "guard").run
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def misstep(*words: str) -> subprocess.CompletedProcess[str]:
        command, environment = [*MISSTEP, *words], environment_of_a_user()
        return subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=SECONDS)

    folder = str(first.path.parent.absolute())
    again = misstep("replay", first.name, "--dir", folder)
    assert (again.returncode, list(elsewhere.iterdir())) == (0, []), again.stderr
    *_, command = again.stdout.strip().partition("misstep show ")
    assert misstep("show", command.strip()).returncode in (0, 3)
    assert Path(command.strip()).name != first.name
    write("train.py", "import torch")
    nothing = misstep("replay", first.name, "--dir", folder)
    assert nothing.returncode == 1
    assert "nothing was replayed" in " ".join(nothing.stderr.split())


OF_THE_DATA = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.2))
            self.head = nn.Linear(8, 4)

        def forward(self, x):
            return self.head(self.body(torch.log(x)))  # planted

    torch.manual_seed({seed})
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for number in range(1, 8):
        x, y = torch.rand(16, 8) + 0.1, torch.randint(0, 4, (16,))
        if number == 5:
            x[7, 3] = -1.0
        loss = F.cross_entropy(net(x), y) + 0.001 * torch.randn_like(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("trained")
"""


def test_a_capsule_proves_bit_equality_in_a_fresh_process_whatever_its_seed(
    run_story: RunStory, misstep_command: RunCommand, write: Write
) -> None:
    first = run_story(OF_THE_DATA.format(seed=0), "--level", "guard")
    assert first.run.verdict is not None
    capsule = first.run.path / "rank-0" / "capsules" / "step-5.capsule"
    write("train.py", OF_THE_DATA.format(seed=1))
    again = misstep_command("run", "--replay", str(capsule), "--name", "again", sys.executable, "train.py")
    assert (again.exit, again.out) == (0, "")  # it ended after the one step
    run = open_run(first.folder / "missteps" / "again")
    (event,) = run.events("replay")
    assert (event.facts["step"], event.facts["exact"]) == (5, "exact")
    assert run.verdict is not None
    assert (run.verdict.step, run.verdict.op, run.verdict.precision) == (5, "aten.log", "operator")
    assert run.verdict.source is not None
    assert run.verdict.source.code.endswith("# planted")


def test_a_chosen_step_is_kept_and_a_missing_one_is_told(misstep_command: RunCommand, write: Write) -> None:
    write("train.py", FAULTS["log of a negative"].script())
    command = ("run", "--level", "guard", "--name", "fox", sys.executable, "train.py")
    assert misstep_command(*command, environment={"MISSTEP_CAPSULES": "2"}).exit == 0
    healthy = misstep_command("replay", "fox@2", "--json")
    assert (healthy.exit, json.loads(healthy.out)["exact"]) == (0, "exact"), healthy.err
    missing = misstep_command("replay", "fox@3")
    assert missing.exit == 1
    assert "fox has no capsule of step 3; it has fox@2, fox@4" in missing.err


SCRIPTED = """
    import torch
    from torch import nn

    @torch.jit.script
    def error(out, y):
        return (out - y).pow(2).mean()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.head = nn.Linear(8, 8), nn.Linear(8, 1)

        def forward(self, x, wrong):
            y = self.fc(x)
            if wrong:
                {network}
            return self.head(y)

    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for number in range(1, 6):
        out = net(torch.randn(16, 8), number == 4)
        loss = error(out, torch.randn(16, 1){loss})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "phase"),
    [("y = torch.log(y)  # planted", "forward"), ("y = y + torch.sqrt(y - y)  # planted", "backward")],
)
def test_a_loss_that_cannot_be_heard_is_replayed_from_the_networks_outputs(
    line: str, phase: str, run_story: RunStory
) -> None:
    result = run_story(SCRIPTED.format(network=line, loss=""), "--level", "guard")
    assert result.exit == 0, result.err
    verdict = result.run.verdict
    assert verdict is not None
    assert (verdict.step, verdict.phase, verdict.precision) == (4, phase, "operator")
    assert verdict.exact.startswith("network only")
    assert verdict.source is not None
    assert verdict.source.code.endswith("# planted")


def test_a_fault_inside_such_a_loss_is_said_to_lie_there(run_story: RunStory) -> None:
    result = run_story(SCRIPTED.format(network="pass", loss=" / (number != 4)"), "--level", "guard")
    verdict = result.run.verdict
    assert verdict is not None
    assert (verdict.step, verdict.phase, verdict.precision) == (4, "loss", "step")
    (event,) = result.run.events("replay")
    assert "between the network's output and backward" in event.facts["text"]


def test_ranks_are_cleared_or_named_each_by_its_own_replay(write: Write, misstep_command: RunCommand) -> None:
    write(
        "train.py",
        """
        import torch
        import torch.distributed as dist
        from torch import nn
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group("gloo")
        rank = dist.get_rank()
        torch.manual_seed(rank)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

            def forward(self, x):
                y = self.fc(x)
                if rank == 1 and step == 3:
                    y = torch.log(y)  # planted
                return self.head(y)

        model = DistributedDataParallel(Net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(1, 5):
            loss = model(torch.randn(8, 4)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        dist.destroy_process_group()
        """,
    )
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--standalone")
    result = misstep_command("run", "--level", "guard", sys.executable, *launcher, "train.py")
    assert result.exit == 0, result.err
    verdict = result.run.verdict
    assert verdict is not None
    assert (verdict.rank, verdict.step, verdict.op, verdict.precision) == (1, 3, "aten.log", "operator")
    (event,) = result.run.events("replay", rank=0)
    assert "came from another rank" in event.facts["text"]
