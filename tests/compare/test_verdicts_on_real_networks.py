"""Faults planted one at a time in real networks, each found; and as many harmless changes, each called noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from nets import Attention, Gpt, captured, cnn, gpt, ids, pictures
from torch import nn

from misstep.compare.layers import diff
from misstep.compare.names import owner
from misstep.store.foreign.source import ArraySource

Sources = tuple[ArraySource, ArraySource]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def gpts(change: Callable[[Gpt], object], *, backward: bool = False) -> Sources:
    left, right = gpt(), gpt()
    with torch.no_grad():
        change(right)
    return captured(left, ids(), backward=backward), captured(right, ids(), backward=backward)


def cnns(change: Callable[..., object], *, train: bool = True) -> Sources:
    left, right = cnn().train(train), cnn().train(train)
    if not train:
        captured(left.train(), pictures())
        captured(right.train(), pictures())
        left.eval(), right.eval()
    with torch.no_grad():
        change(right)
    return captured(left, pictures()), captured(right, pictures())


def attribute(path: str, value: object) -> Callable[[nn.Module], None]:
    """A change: `blocks.1.ln2.eps` becomes another value."""

    def change(model: nn.Module) -> None:
        scope, _, name = path.rpartition(".")
        setattr(model.get_submodule(scope), name, value)

    return change


def scale(path: str, factor: float) -> Callable[[nn.Module], None]:
    return lambda model: model.get_parameter(path).mul_(factor)


class CastInside(nn.Module):
    """A layer that computes in half and hands on float32."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x.half(), self.weight.half(), self.bias.half()).float()


class HandsOnTooLittle(torch.autograd.Function):
    """Right forward, a gradient one percent short."""

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x)
        return nn.functional.gelu(x)

    @staticmethod
    def backward(ctx, arriving):  # type: ignore[no-untyped-def]
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(nn.functional.gelu(again), again, arriving)
        return gradient * 0.99


class GeluWithWrongBackward(nn.GELU):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return HandsOnTooLittle.apply(x)


def bf16_layer(model: Gpt) -> None:
    up = model.blocks[0].up.half()
    forward = up.forward
    up.forward = lambda x: forward(x.half())
    down = model.blocks[0].down
    inner = down.forward
    down.forward = lambda x: inner(x.float())


def swap_modules(path: str, make: Callable[[nn.Module], nn.Module]) -> Callable[[nn.Module], None]:
    def change(model: nn.Module) -> None:
        scope, _, name = path.rpartition(".")
        setattr(model.get_submodule(scope), name, make(model.get_submodule(path)))

    return change


def without_bias(model: Gpt) -> None:
    model.blocks[1].down.bias = None


def transposed(model: Gpt) -> None:
    weight = model.blocks[2].attention.out.weight
    weight.copy_(weight.T.clone())


def kernel_flipped(model: nn.Module) -> None:
    weight = model.get_parameter("layers.1.conv1.weight")
    weight.copy_(weight.flip(-1).clone())


def shifted_padding(model: nn.Module) -> None:
    conv = model.get_submodule("layers.1.conv1")
    weight = conv.weight
    conv.forward = lambda x: nn.functional.conv2d(nn.functional.pad(x, (2, 0, 1, 1)), weight)  # type: ignore[method-assign]


def other_input() -> Sources:
    changed = pictures().clone()
    changed[3, 1, 4, 5] += 0.5
    return captured(cnn(), pictures()), captured(cnn(), changed)


def other_token() -> Sources:
    changed = ids().clone()
    changed[0, 0] = (changed[0, 0] + 1) % 97
    return captured(gpt(), ids()), captured(gpt(), changed)


PLANTED: dict[str, tuple[Callable[[], Sources], str]] = {
    "one LayerNorm weight scaled by 1 %": (
        lambda: gpts(scale("blocks.2.ln1.weight", 1.01)),
        "blocks.2.ln1.weight:param",
    ),
    "one Linear weight scaled by 0.1 %": (lambda: gpts(scale("blocks.0.up.weight", 1.001)), "blocks.0.up.weight:param"),
    "LayerNorm epsilon 1e-6 for 1e-5": (lambda: gpts(attribute("blocks.1.ln2.eps", 1e-6)), "blocks.1.ln2:output"),
    "BatchNorm epsilon 1e-3 for 1e-5": (lambda: cnns(attribute("layers.0.bn1.eps", 1e-3)), "layers.0.bn1:output"),
    "BatchNorm in evaluation mode": (lambda: cnns(lambda m: m.layers[1].bn1.eval()), "layers.1.bn1:output"),
    "a shifted running mean": (
        lambda: cnns(lambda m: m.layers[1].bn2.running_mean.add_(0.05), train=False),
        "layers.1.bn2.running_mean:buffer",
    ),
    "GELU by tanh": (lambda: gpts(attribute("blocks.1.act", nn.GELU("tanh"))), "blocks.1.act:output"),
    "SiLU for GELU": (lambda: gpts(attribute("blocks.3.act", nn.SiLU())), "blocks.3.act:output"),
    "LeakyReLU for ReLU": (lambda: cnns(attribute("layers.0.relu", nn.LeakyReLU(0.01))), "layers.0.relu:output"),
    "average pooling for max pooling": (lambda: cnns(attribute("pool", nn.AvgPool2d(2))), "pool:output"),
    "a transposed weight": (lambda: gpts(transposed), "blocks.2.attention.out.weight:param"),
    "a flipped kernel": (lambda: cnns(kernel_flipped), "layers.1.conv1.weight:param"),
    "a layer in half": (lambda: gpts(bf16_layer), "blocks.0.up.weight:param"),
    "half inside, float32 outside": (lambda: gpts(swap_modules("blocks.1.up", CastInside)), "blocks.1.up:output"),
    "a weight rounded to bfloat16": (
        lambda: gpts(lambda m: m.blocks[1].up.weight.copy_(m.blocks[1].up.weight.bfloat16())),
        "blocks.1.up.weight:param",
    ),
    "a dropped bias": (lambda: gpts(without_bias), "blocks.1.down.bias:param"),
    "padding off by one": (lambda: cnns(shifted_padding), "layers.1.conv1:output"),
    "another number of classes": (lambda: cnns(attribute("fc", nn.Linear(16, 11))), "fc.weight:param"),
    "dilation 2": (
        lambda: cnns(
            lambda m: (setattr(m.layers[2].conv2, "dilation", (2, 2)), setattr(m.layers[2].conv2, "padding", (2, 2)))
        ),
        "layers.2.conv2:output",
    ),
    "attention not scaled": (lambda: gpts(attribute("blocks.1.attention.scale", 1.0)), "blocks.1.attention.out:input"),
    "a causal mask": (lambda: gpts(attribute("blocks.2.attention.causal", True)), "blocks.2.attention.out:input"),
    "twice the heads": (lambda: gpts(attribute("blocks.0.attention.heads", 8)), "blocks.0.attention.out:input"),
    "residual scaled by 0.9": (lambda: gpts(attribute("blocks.2.factor", 0.9)), "blocks.2:output"),
    "positions scaled": (lambda: gpts(scale("positions", 1.01)), "positions:param"),
    "one pixel of the input": (other_input, "stem:input"),
    "one token of the input": (other_token, "tokens:input"),
    "a NaN in one weight": (
        lambda: gpts(lambda m: m.blocks[1].down.weight[3, 4].fill_(float("nan"))),
        "blocks.1.down.weight:param",
    ),
    "a wrong backward": (
        lambda: gpts(attribute("blocks.1.act", GeluWithWrongBackward()), backward=True),
        "blocks.1.act:grad_input",
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_as_the_first_cause(fault: str) -> None:
    make, guilty = PLANTED[fault]
    found = diff(*make())
    assert not found
    assert found.cause is not None
    assert found.cause.name == guilty, found.summary()
    # A layer whose weight and bias both changed has two causes; nobody else may be accused.
    assert {owner(row.entry.name) for row in found.causes} == {owner(found.cause.entry.name)}, found.summary()


def permuted_sum(model: Gpt) -> None:
    """The inner axis of one matrix product in another order: the same terms, summed differently."""
    up, down = model.blocks[1].up, model.blocks[1].down
    order = torch.randperm(up.in_features, generator=torch.Generator().manual_seed(3))
    forward_weight = up.weight
    up.forward = lambda x: nn.functional.linear(x[..., order], forward_weight[:, order], up.bias)
    inner = torch.randperm(down.in_features, generator=torch.Generator().manual_seed(4))
    down.forward = lambda x: nn.functional.linear(x[..., inner], down.weight[:, inner], down.bias)


def each_linear(forward: Callable[[nn.Linear, torch.Tensor], torch.Tensor]) -> Callable[[nn.Module], None]:
    def change(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.forward = lambda x, module=module: forward(module, x)  # type: ignore[method-assign]

    return change


def each_norm(forward: Callable[..., torch.Tensor]) -> Callable[[nn.Module], None]:
    def change(model: nn.Module) -> None:
        for module in model.modules():
            if type(module).__name__ in ("Norm", "BatchNorm2d"):
                module.forward = lambda x, module=module: forward(module, x)  # type: ignore[method-assign]

    return change


def in_blocks(module: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    halves = x.shape[-1] // 2
    first = x[..., :halves] @ module.weight[:, :halves].T
    return first + x[..., halves:] @ module.weight[:, halves:].T + module.bias


def one_by_one(module: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """The naive sum, term after term: the worst order there is."""
    result = module.bias.expand(*x.shape[:-1], -1).clone()
    for k in range(x.shape[-1]):
        result = result + x[..., k : k + 1] * module.weight[:, k]
    return result


def folded_batchnorm(module: nn.BatchNorm2d, x: torch.Tensor) -> torch.Tensor:
    assert module.running_mean is not None
    assert module.running_var is not None
    factor = module.weight / torch.sqrt(module.running_var + module.eps)
    shift = module.bias - module.running_mean * factor
    return x * factor[:, None, None] + shift[:, None, None]


def batchnorm_by_hand(module: nn.BatchNorm2d, x: torch.Tensor) -> torch.Tensor:
    mean, square = x.mean((0, 2, 3), keepdim=True), (x * x).mean((0, 2, 3), keepdim=True)
    normal = (x - mean) * torch.rsqrt(square - mean * mean + module.eps)
    return normal * module.weight[:, None, None] + module.bias[:, None, None]


def convolution_by_matrix(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.forward = lambda x, module=module: unfolded(module, x)  # type: ignore[method-assign]


def unfolded(module: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
    columns = nn.functional.unfold(x, 3, padding=1)
    result = module.weight.flatten(1) @ columns
    if module.bias is not None:
        result = result + module.bias[:, None]
    return result.view(len(x), -1, *x.shape[2:])


def with_threads(count: int, model: Callable[[], nn.Module], batch: torch.Tensor) -> Sources:
    left = captured(model(), batch)
    torch.set_num_threads(count)
    return left, captured(model(), batch)


def without_mkldnn() -> Sources:
    left = captured(cnn(), pictures(), backward=True)
    torch.backends.mkldnn.enabled = False
    try:
        return left, captured(cnn(), pictures(), backward=True)
    finally:
        torch.backends.mkldnn.enabled = True


def channels_last() -> Sources:
    model = cnn().to(memory_format=torch.channels_last)
    return captured(cnn(), pictures()), captured(model, pictures().to(memory_format=torch.channels_last))


def in_double(make: Callable[[], nn.Module], batch: torch.Tensor, *, backward: bool = False) -> Sources:
    exact = batch.double() if batch.is_floating_point() else batch
    return captured(make(), batch, backward=backward), captured(make().double(), exact, backward=backward)


def in_bfloat16(change: Callable[[nn.Module], None]) -> Sources:
    left, right = gpt().bfloat16(), gpt().bfloat16()
    change(right)
    return captured(left, ids()), captured(right, ids())


def float32_and_bfloat16() -> Sources:
    return captured(gpt(), ids()), captured(gpt().bfloat16(), ids())


def lstm(by_hand: bool) -> nn.Module:
    torch.manual_seed(5)
    layer = nn.LSTM(24, 32, batch_first=True)
    if by_hand:

        def forward(x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
            hidden = cell = torch.zeros(len(x), 32)
            outputs = []
            for at in range(x.shape[1]):
                gates = (
                    x[:, at] @ layer.weight_ih_l0.T
                    + layer.bias_ih_l0
                    + hidden @ layer.weight_hh_l0.T
                    + layer.bias_hh_l0
                )
                into, forget, new, out = gates.chunk(4, 1)
                cell = forget.sigmoid() * cell + into.sigmoid() * new.tanh()
                hidden = out.sigmoid() * cell.tanh()
                outputs.append(hidden)
            return torch.stack(outputs, 1), (hidden[None], cell[None])

        layer.forward = forward  # type: ignore[method-assign]

    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = layer, nn.Linear(32, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(x)[0])

    torch.manual_seed(6)
    return First()


def lstms() -> Sources:
    batch = torch.randn(6, 20, 24, generator=torch.Generator().manual_seed(7))
    return captured(lstm(False), batch), captured(lstm(True), batch)


def attention_by_hand(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, Attention):
            module.by_hand = True


def norm_by_hand(model: nn.Module) -> None:
    for module in model.modules():
        if type(module).__name__ == "Norm":
            module.by_hand = True


def traced() -> Sources:
    model = cnn().eval()
    plain = captured(model, pictures())
    compiled = torch.jit.freeze(torch.jit.trace(cnn().eval(), pictures()))
    result = {"loss:loss": (compiled(pictures()) ** 2).mean().detach().numpy()}
    left = {str(entry): plain.array(entry) for entry in plain.entries() if entry.role == "loss"}
    return ArraySource(left), ArraySource(result)


HARMLESS: dict[str, Callable[[], Sources]] = {
    "sums in another order": lambda: gpts(permuted_sum),
    "sums in two halves": lambda: gpts(each_linear(in_blocks)),
    "sums term by term": lambda: gpts(each_linear(one_by_one)),
    "einsum for linear": lambda: gpts(
        each_linear(lambda m, x: torch.einsum("...i,oi->...o", x, m.weight) + m.bias), backward=True
    ),
    "products in float64, rounded": lambda: gpts(
        each_linear(lambda m, x: (x.double() @ m.weight.double().T + m.bias.double()).float())
    ),
    "two threads, transformer": lambda: with_threads(2, gpt, ids()),
    "two threads, convolutions": lambda: with_threads(2, cnn, pictures()),
    "another convolution library, with backward": without_mkldnn,
    "channels last": channels_last,
    "convolution as a matrix product": lambda: cnns(convolution_by_matrix),
    "attention step by step": lambda: gpts(attention_by_hand, backward=True),
    "LayerNorm by hand": lambda: gpts(norm_by_hand, backward=True),
    "BatchNorm by hand": lambda: cnns(each_norm(batchnorm_by_hand)),
    "BatchNorm folded into a factor": lambda: cnns(each_norm(folded_batchnorm), train=False),
    "GELU by erf": lambda: gpts(
        lambda m: [setattr(b.act, "forward", lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5))) for b in m.blocks]
    ),
    "embedding as a product with one-hot rows": lambda: gpts(
        lambda m: setattr(m.tokens, "forward", lambda x: nn.functional.one_hot(x, 97).float() @ m.tokens.weight)
    ),
    "the mean column by column": lambda: cnns(
        lambda m: setattr(m.mean, "forward", lambda x: sum(x.unbind(3)).sum(2)[..., None, None] * (1 / 64))
    ),
    "float64, transformer with backward": lambda: in_double(gpt, ids(), backward=True),
    "float64, convolutions with backward": lambda: in_double(cnn, pictures(), backward=True),
    "an LSTM cell by cell": lstms,
    "bfloat16 with attention step by step": lambda: in_bfloat16(attention_by_hand),
    "bfloat16 with sums in two halves": lambda: in_bfloat16(each_linear(in_blocks)),
    "float32 against bfloat16": float32_and_bfloat16,
    "a frozen, fused network": traced,
}


@pytest.mark.parametrize("change", HARMLESS)
def test_a_harmless_change_is_called_noise(change: str) -> None:
    found = diff(*HARMLESS[change]())
    assert found, found.summary()
    assert found.cause is None
