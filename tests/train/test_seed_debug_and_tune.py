"""The samples of the MindSpore guide "Debugging and Tuning", with misstep.train in place of mindspore.

The guide's loss-scaled training step needs an NPU in MindSpore itself; here it runs on a CPU, on both frameworks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import misstep.train as ms
from misstep.train import (
    DynamicLossScaleUpdateCell,
    FixedLossScaleUpdateCell,
    GeneratorDataset,
    LossMonitor,
    Model,
    TrainOneStepWithLossScaleCell,
    WithLossCell,
)

from .conftest import Kit


def get_data(num: int, w: float = 2.0, b: float = 3.0) -> Iterator[Any]:
    for _ in range(num):
        x = np.random.uniform(-10.0, 10.0)
        noise = np.random.normal(0, 1)
        y = x * w + b + noise
        yield np.array([x]).astype(np.float32), np.array([y]).astype(np.float32)


def create_dataset(num_data: int, batch_size: int = 16, repeat_size: int = 1) -> Any:
    input_data = GeneratorDataset(list(get_data(num_data)), column_names=["data", "label"])
    input_data = input_data.batch(batch_size, drop_remainder=True)  # type: ignore[assignment]
    return input_data.repeat(repeat_size)


def net_of(kit: Kit) -> Any:
    return kit.linear(np.array([[0.01]], np.float32), np.zeros(1, np.float32))


def adam(kit: Kit, net: Any) -> Any:
    if kit.name == "torch":
        import torch

        return torch.optim.Adam(net.parameters(), lr=0.01)
    from mindspore import nn

    return nn.Adam(params=net.trainable_params(), learning_rate=0.01)


@pytest.mark.mindspore
def test_the_parameters_of_a_mindspore_network_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from mindspore import nn

    class msNet(nn.Cell):
        def __init__(self) -> None:
            super(msNet, self).__init__()  # noqa: UP008  as printed
            self.fc = nn.Dense(1, 1, weight_init="normal")

        def construct(self, x):  # type: ignore[no-untyped-def]
            output = self.fc(x)
            return output  # noqa: RET504  as printed

    msnet = msNet()
    # Obtain all parameters.
    all_parameter = []
    for item in msnet.get_parameters():
        all_parameter.append(item)
        print(item.name, item.data.shape)
    print(f"all parameter numbers: {len(all_parameter)}")

    # Obtain trainable parameters.
    trainable_params = msnet.trainable_params()
    for item in trainable_params:
        print(item.name, item.data.shape)
    print(f"trainable parameter numbers: {len(trainable_params)}")

    assert capsys.readouterr().out.splitlines() == [
        "fc.weight (1, 1)",
        "fc.bias (1,)",
        "all parameter numbers: 2",
        "fc.weight (1, 1)",
        "fc.bias (1,)",
        "trainable parameter numbers: 2",
    ]


def test_the_parameters_of_a_torch_network_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from torch import nn

    class ptNet(nn.Module):
        def __init__(self) -> None:
            super(ptNet, self).__init__()  # noqa: UP008  as printed
            self.fc = nn.Linear(1, 1)

        def construct(self, x: Any) -> Any:
            output = self.fc(x)
            return output  # noqa: RET504  as printed

    ptnet = ptNet()
    all_parameter = []
    trainable_params = []
    # Obtain network parameters.
    for name, item in ptnet.named_parameters():
        if item.requires_grad:
            trainable_params.append(item)
        all_parameter.append(item)
        print(name, item.shape)

    for name, buffer in ptnet.named_buffers():
        all_parameter.append(buffer)
        print(name, buffer.shape)
    print(f"all parameter numbers: {len(all_parameter)}")
    print(f"trainable parameter numbers: {len(trainable_params)}")

    assert capsys.readouterr().out.splitlines() == [
        "fc.weight torch.Size([1, 1])",
        "fc.bias torch.Size([1])",
        "all parameter numbers: 2",
        "trainable parameter numbers: 2",
    ]


def test_the_general_process_with_a_static_loss_scale(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    net = net_of(kit)
    loss_scale_manager = ms.FixedLossScaleManager(drop_overflow_update=False)  # Static loss scale
    model = ms.Model(network=net, loss_fn=kit.mse(), optimizer=adam(kit, net), loss_scale_manager=loss_scale_manager)
    model.train(1, create_dataset(160), callbacks=LossMonitor())
    losses = [float(value) for value in re.findall(r"loss is ([\d.]+)", capsys.readouterr().out)]
    assert len(losses) == 10
    assert all(np.isfinite(losses))


def test_the_general_process_with_a_dynamic_loss_scale(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    net = net_of(kit)
    loss_scale_manager = ms.DynamicLossScaleManager()  # Dynamic loss scale
    model = ms.Model(network=net, loss_fn=kit.mse(), optimizer=adam(kit, net), loss_scale_manager=loss_scale_manager)
    model.train(1, create_dataset(160), callbacks=LossMonitor())
    assert len(re.findall(r"loss is [\d.]+", capsys.readouterr().out)) == 10


def test_a_self_packaged_forward_network_and_loss_function(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    net, loss = net_of(kit), kit.mse()
    optimizer = adam(kit, net)
    if kit.name == "mindspore":
        import mindspore

        net.to_float(mindspore.float16)
        loss.to_float(mindspore.float32)
    net_with_loss = WithLossCell(net, loss)
    model = ms.Model(network=net_with_loss, optimizer=optimizer)
    model.train(1, create_dataset(160), callbacks=LossMonitor())
    assert len(re.findall(r"loss is [\d.]+", capsys.readouterr().out)) == 10


def test_the_table_of_loss_overflow_and_scale(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    np.random.seed(1)
    net = net_of(kit)
    net_with_loss = WithLossCell(net, kit.mse())
    scale_sense = FixedLossScaleUpdateCell(1)  # (config.loss_scale) # Static loss scale
    train_net = TrainOneStepWithLossScaleCell(net_with_loss, optimizer=adam(kit, net), scale_sense=scale_sense)

    train_net.set_train()
    dataset = create_dataset(1600)
    iterator = dataset.create_tuple_iterator()
    for i, data in enumerate(iterator):
        loss, overflow, scaling_sens = train_net(*data)
        print("step: {}, loss: {}, overflow:{}, scale:{}".format(i, loss, overflow, scaling_sens))  # noqa: UP032

    rows = [
        re.fullmatch(r"step: (\d+), loss: ([\d.]+), overflow:(True|False), scale:([\d.]+)", line)
        for line in capsys.readouterr().out.splitlines()
    ]
    assert [row and int(row[1]) for row in rows] == list(range(100))
    assert {row and (row[3], row[4]) for row in rows} == {("False", "1.0")}
    losses = [float(row[2]) for row in rows if row]
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) / 1.5


def test_a_network_that_trains_itself_is_a_model_too(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    net = net_of(kit)
    train_net = TrainOneStepWithLossScaleCell(
        WithLossCell(net, kit.mse()),
        optimizer=adam(kit, net),
        scale_sense=DynamicLossScaleUpdateCell(loss_scale_value=1024, scale_factor=2, scale_window=1000),
    )
    model = Model(network=train_net)
    model.train(1, create_dataset(160), callbacks=LossMonitor())
    assert len(re.findall(r"epoch: 1 step: \d+, loss is [\d.]+", capsys.readouterr().out)) == 10


@pytest.mark.mindspore
def test_mindspores_own_update_cells_and_network_are_taken(graph_mode: None) -> None:
    from mindspore import nn

    from .conftest import KITS

    kit = KITS["mindspore"]
    net = net_of(kit)
    net_with_loss = nn.WithLossCell(net, kit.mse())
    scale_sense = nn.DynamicLossScaleUpdateCell(loss_scale_value=1024, scale_factor=2, scale_window=3)
    train_net = TrainOneStepWithLossScaleCell(net_with_loss, optimizer=adam(kit, net), scale_sense=scale_sense)
    train_net.set_train()
    scales = [train_net(*data)[2] for data in create_dataset(112).create_tuple_iterator()]
    assert scales == [1024, 1024, 1024, 2048, 2048, 2048, 4096]
