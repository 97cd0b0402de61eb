"""Print: the same words from eager and compiled code of either framework, in a terminal, a file and a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import misstep
from misstep.capture.process import session_for_process
from misstep.errors import FormatError
from misstep.settings import Settings
from misstep.store.reading.reader import open_run
from misstep.train import context, parse_print
from misstep.train.printing import as_text, packed, unpacked
from misstep.train.printing.file import append

from .conftest import Kit

SEED_OUTPUT = """\
print Tensor x and Tensor y:
Tensor(shape=[2, 1], dtype=Int32, value=
[[1]
 [1]])
Tensor(shape=[2, 2], dtype=Int32, value=
[[1 1]
 [1 1]])
"""


@pytest.fixture(autouse=True)
def fresh_context() -> Iterator[None]:
    yield
    context.reset_context()


def ones(kit: Kit) -> tuple[Any, Any]:
    return kit.tensor(np.ones([2, 1], np.int32)), kit.tensor(np.ones([2, 2], np.int32))


def test_the_guides_sample_prints_what_the_guide_shows(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = ones(kit)
    misstep.Print()("print Tensor x and Tensor y:", x, y)
    assert capsys.readouterr().out == SEED_OUTPUT


@pytest.mark.mindspore
def test_the_guides_sample_prints_the_same_in_graph_mode(graph_mode: None, capsys: pytest.CaptureFixture[str]) -> None:
    import mindspore.nn as nn
    from mindspore import Tensor

    class PrintDemo(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.print = misstep.Print()

        def construct(self, x: Any, y: Any) -> Any:
            self.print("print Tensor x and Tensor y:", x, y)
            return x

    x = Tensor(np.ones([2, 1]).astype(np.int32))
    y = Tensor(np.ones([2, 2]).astype(np.int32))
    net = PrintDemo()
    output = net(x, y)
    assert output.asnumpy().tolist() == [[1], [1]]
    assert capsys.readouterr().out == SEED_OUTPUT


@pytest.mark.mindspore
def test_graph_mode_prints_once_a_call_and_numbers_as_mindspore_itself(
    graph_mode: None, capfd: pytest.CaptureFixture[str]
) -> None:
    import mindspore as ms

    class Both(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.ours = misstep.Print()
            self.theirs = ms.ops.Print()

        def construct(self, x: Any) -> Any:
            y = x * 2
            self.ours("half", y, y.astype(ms.float16), 3, 2.5)
            return y

    class Theirs(Both):
        def construct(self, x: Any) -> Any:
            y = x * 2
            self.theirs("half", y, y.astype(ms.float16), 3, 2.5)
            return y

    shown = []
    for network in (Both(), Theirs()):
        for number in (1.0, -0.37):
            network(ms.Tensor(np.full((2, 3), number, np.float32))).asnumpy()
        shown.append(capfd.readouterr().out)
    assert shown[0] == shown[1]
    assert shown[0].count("half") == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_prints_in_order_and_computes_the_same(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show = misstep.Print()
    layer = torch.nn.Linear(3, 2)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = layer(x)
        show("first", y, 3)
        show("second", {"y": y.detach() + 1})
        return y.sum()

    def run(of: Any) -> tuple[str, float, list[list[float]]]:
        x = torch.ones(2, 3, requires_grad=True)
        loss = of(x)
        loss.backward()
        return capsys.readouterr().out, loss.item(), x.grad.tolist()

    eager = run(function)
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    assert run(compiled) == eager
    assert run(compiled) == eager  # the second time nothing is traced any more
    assert eager[0].index("first") < eager[0].index("second")


@pytest.mark.story
def test_a_function_compiled_by_inductor_prints(capsys: pytest.CaptureFixture[str]) -> None:
    show = misstep.Print(gradient=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (show("x", x * 2) * 3).sum()

    x = torch.ones(2, requires_grad=True)
    torch.compile(function, fullgraph=True)(x).backward()
    assert capsys.readouterr().out.splitlines() == [
        "x",
        "Tensor(shape=[2], dtype=Float32, value=[ 2.00000000e+00  2.00000000e+00])",
        "x",
        "gradient:",
        "Tensor(shape=[2], dtype=Float32, value=[ 3.00000000e+00  3.00000000e+00])",
    ]


GRADIENT_OUTPUT = """\
h
Tensor(shape=[1, 2], dtype=Float32, value=
[[ 2.00000000e+00  4.00000000e+00]])
h
gradient:
Tensor(shape=[1, 2], dtype=Float32, value=
[[ 4.00000000e+00  8.00000000e+00]])
"""


@pytest.mark.parametrize("backend", ["", "eager", "aot_eager"])
def test_the_gradient_is_printed_when_it_flows_through(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    show = misstep.Print(gradient=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        h = show("h", x * 2)
        return (h * h).sum()

    if backend:
        function = torch.compile(function, fullgraph=True, backend=backend)
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    function(x).backward()
    assert capsys.readouterr().out == GRADIENT_OUTPUT
    assert x.grad.tolist() == [[8.0, 16.0]]


@pytest.mark.mindspore
@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_the_gradient_is_printed_in_mindspore(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    import mindspore as ms

    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.show = misstep.Print(gradient=True)

        def construct(self, x: Any) -> Any:
            h = self.show("h", x * 2)
            return (h * h).sum()

    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    try:
        gradient = ms.grad(Net())(ms.Tensor(np.array([[1.0, 2.0]], np.float32)))
        assert gradient.asnumpy().tolist() == [[8.0, 16.0]]
    finally:
        ms.set_context(mode=before)
    assert capsys.readouterr().out == GRADIENT_OUTPUT


def test_a_large_tensor_is_shown_by_its_corners_extremes_and_bad_values() -> None:
    values = np.arange(2000, dtype=np.float32)
    values[7], values[8] = np.nan, np.inf
    assert as_text(values) == (
        "Tensor(shape=[2000], dtype=Float32, value=[ 0.00000000e+00  1.00000000e+00  2.00000000e+00 ..."
        "  1.99700000e+03  1.99800000e+03  1.99900000e+03], min=0, max=1999, mean=1000, nan=1, inf=1)"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(2.5), "Tensor(shape=[], dtype=Float32, value=2.5)"),
        (np.array([], np.int64), "Tensor(shape=[0], dtype=Int64, value=[])"),
        (np.array([True, False]), "Tensor(shape=[2], dtype=Bool, value=[ True False])"),
        (np.array([1], ml_dtypes.bfloat16), "Tensor(shape=[1], dtype=BFloat16, value=[ 1.000e+00])"),
    ],
)
def test_every_kind_of_value_has_a_text(value: Any, text: str) -> None:
    assert as_text(np.asarray(value)) == text


def test_bfloat16_keeps_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    misstep.Print()(torch.ones(1, dtype=torch.bfloat16))
    assert "dtype=BFloat16" in capsys.readouterr().out


def test_words_survive_packing() -> None:
    words = ("", 'text, with "marks" and\nlines', None, "标签", None)
    assert unpacked(packed(words)) == words


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_printed_to_a_file_is_read_back(kit: Kit, tmp_path: Path) -> None:
    context.set_context(print_file_path=str(tmp_path / "print.pb"))
    x, y = ones(kit)
    show = misstep.Print(terminal=False)
    show("print Tensor x and Tensor y:", x, y)
    show("scalar", kit.tensor(np.float32(0.5)))
    read = parse_print(tmp_path / "print.pb")
    assert [value.tolist() if isinstance(value, np.ndarray) else value for value in read] == [
        "print Tensor x and Tensor y:",
        [[1], [1]],
        [[1, 1], [1, 1]],
        "scalar",
        0.5,
    ]
    assert read[1].dtype == np.int32  # type: ignore[union-attr]


@pytest.mark.mindspore
def test_graph_mode_prints_into_a_file(graph_mode: None, tmp_path: Path) -> None:
    import mindspore as ms

    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.show = misstep.Print(file=tmp_path / "print.pb", terminal=False)

        def construct(self, x: Any) -> Any:
            self.show("x:", x)
            return x + 1

    Net()(ms.Tensor(np.arange(3, dtype=np.int32))).asnumpy()
    text, values = parse_print(tmp_path / "print.pb")
    assert (text, values.tolist()) == ("x:", [0, 1, 2])  # type: ignore[union-attr]


@pytest.mark.mindspore
def test_the_file_is_mindspores_own_format(tmp_path: Path) -> None:
    from mindspore.train.print_pb2 import Print

    append(tmp_path / "print.pb", ["text", np.array([[1, 2]], np.int32)])
    append(tmp_path / "print.pb", [np.array(3.0, np.float16)])
    message = Print()
    message.ParseFromString((tmp_path / "print.pb").read_bytes())
    assert message.value[0].desc == "text"
    tensor = message.value[1].tensor
    assert (list(tensor.dims), tensor.tensor_type) == ([1, 2], "Int32")
    assert np.frombuffer(tensor.tensor_content, np.int32).tolist() == [1, 2]
    assert (list(message.value[2].tensor.dims), message.value[2].tensor.tensor_type) == ([], "Float16")


@pytest.mark.parametrize("kind", ["bool", "int8", "uint8", "int64", "float16", "float64", "complex64", "bfloat16"])
def test_every_type_comes_back_from_the_file(kind: str, tmp_path: Path) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    append(tmp_path / "print.pb", [array])
    (read,) = parse_print(tmp_path / "print.pb")
    assert isinstance(read, np.ndarray)
    assert read.dtype == array.dtype
    assert read.tobytes() == array.tobytes()


@pytest.mark.parametrize("content", [b"", b"not a print file at all", b"\x0a\x05\x0a"])
def test_a_file_that_is_no_print_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "print.pb").write_bytes(content)
    with pytest.raises(FormatError, match=r"print\.pb"):
        parse_print(tmp_path / "print.pb")


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_printed_while_a_run_is_watched_is_in_the_run(kit: Kit, tmp_path: Path) -> None:
    show = misstep.Print(terminal=False)
    network = kit.linear()
    with session_for_process(Settings.load(dir=str(tmp_path), name="printed")) as session:
        model = misstep.train.Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network))
        misstep.attach(network)
        data = kit.tensor(np.ones((2, 4), np.float32)), kit.tensor(np.ones((2, 1), np.float32))
        noted = misstep.train.LambdaCallback(on_train_step_end=lambda run: show("bias", network.bias))
        model.train(1, [data, data], callbacks=noted)
        directory = session.run_directory
    assert directory is not None
    printed = [event for event in open_run(directory).events() if event.kind == "print"]
    assert len(printed) == 2
    assert all(event.facts["text"].startswith("bias\nTensor(shape=[1]") for event in printed)


@pytest.mark.mindspore
def test_what_graph_mode_prints_is_in_the_run(graph_mode: None, tmp_path: Path) -> None:
    import mindspore as ms

    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = ms.nn.Dense(4, 1)
            self.show = misstep.Print(terminal=False)

        def construct(self, x: Any) -> Any:
            y = self.dense(x)
            self.show("y", y)
            return y

    network = Net()
    with session_for_process(Settings.load(dir=str(tmp_path), name="printed")) as session:
        misstep.attach(network)
        model = misstep.train.Model(
            network, loss_fn=ms.nn.MSELoss(), optimizer=ms.nn.SGD(network.trainable_params(), 0.1)
        )
        data = ms.Tensor(np.ones((2, 4), np.float32)), ms.Tensor(np.ones((2, 1), np.float32))
        model.train(1, [data, data, data])
        directory = session.run_directory
    assert directory is not None
    printed = [event for event in open_run(directory).events() if event.kind == "print"]
    assert [event.facts["text"].splitlines()[0] for event in printed] == ["y", "y", "y"]
