"""How much two correct computations may differ: rounding, the length of the sums, and the error already in the inputs.

    allowance = SAFETY · own rounding · cancellation + SAFETY_INHERITED · error of the inputs · gain

All errors are relative to the root mean square of the tensor (`Measures.relative`). The length of a sum is guessed from
the kind of node and the shapes; cancellation is what the terms of the sum would add up to, against what they did add up
to; the gain of a normalisation is read from its input. The constants were set on real networks, see tests/compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from misstep.compare.judge.measures import Measures
from misstep.compare.names import canonical_type

Family = Literal["copy", "pointwise", "linear", "norm", "sum", "softmax", "composite"]

UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "complex128": 2.0**-53,
    "float32": 2.0**-24,
    "complex64": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e4m3fnuz": 2.0**-4,
    "float8_e5m2": 2.0**-3,
    "float8_e5m2fnuz": 2.0**-3,
}
_SINGLE = UNIT_ROUNDOFF["float32"]

SAFETY = 8.0
"""Between the typical error and what is still called noise. Planted faults stand 10x to 10⁵x above it in float32."""
SAFETY_NARROW = 3.0
"""The same for 16 and 8 bits, where one rounding is already a percent and sums run in float32 inside the kernels."""
SAFETY_INHERITED = 2.0
"""Between an error that was measured at the inputs, times its gain, and what is still called noise."""
PEAK = 256.0
"""How far one element may stand out: activations are heavy-tailed, a fault at a border is larger still."""
BACKWARD = 4.0
"""Gradients are differences of nearly equal numbers more often than activations are."""
AT_REST = 2.0
"""Units in which stored parameters may differ: nothing computes them, but a conversion may have rounded them."""

_KINDS: dict[Family, str] = {
    "copy": """identity dropout flatten view reshape transpose permute contiguous cat concat stack split chunk slice
        select unsqueeze squeeze expand pad maxpool adaptivemaxpool relu relu6 leakyrelu threshold hardtanh clamp
        embedding gather indexselect where maskedfill upsample pixelshuffle unfold t clone copy detach unflatten roll
        flip max min abs neg sign maximum minimum""",
    "pointwise": """gelu silu mish sigmoid tanh exp log softplus elu selu celu hardswish hardsigmoid erf sqrt rsqrt pow
        square add sub mul div glu prelu sin cos addcmul addcdiv lerp reciprocal log1p expm1""",
    "linear": "linear matmul conv convtranspose bilinear einsum baddbmm",
    "norm": "batchnorm layernorm groupnorm instancenorm rmsnorm syncbatchnorm localresponsenorm normalize",
    "sum": """sum mean avgpool adaptiveavgpool var std cumsum prod mseloss l1loss bceloss reducemean reducesum nllloss
        smoothl1loss huberloss""",
    "softmax": """softmax logsoftmax crossentropyloss logsumexp kldivloss bcewithlogitsloss crossentropy
        softmaxcrossentropywithlogits sparsesoftmaxcrossentropywithlogits""",
}
_LAST_WORDS: dict[str, Family] = {"norm": "norm", "linear": "linear", "conv": "linear", "embedding": "copy"}
_FAMILIES = {word: family for family, words in _KINDS.items() for word in words.split()}

_GAIN: dict[Family, float] = {
    "copy": 3.0,
    "pointwise": 4.0,
    "linear": 2.0,
    "norm": 3.0,
    "sum": 2.0,
    "softmax": 4.0,
    "composite": 10.0,
}
"""How much of a relative error in the input may be seen in the output, before cancellation."""


@dataclass(frozen=True, slots=True)
class Side:
    """A tensor beside the one that is judged: its size, its shape, and how far its two versions are apart."""

    shape: tuple[int, ...]
    measures: Measures
    role: str
    fetch: Callable[[], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The relative difference that noise explains, and the units it is made of."""

    relative: float
    unit: float
    reduction: int = 1

    @property
    def peak(self) -> float:
        return self.relative * PEAK


def family_of(node_type: str) -> Family:
    """Which kind of arithmetic a node does; `composite` when its type says nothing."""
    kind = canonical_type(node_type)
    found = _FAMILIES.get(kind)
    if found is None:
        # `LlamaRMSNorm`, `FrozenBatchNorm`, `ColumnParallelLinear`: the last word of a class says what it is.
        found = next((family for word, family in _LAST_WORDS.items() if kind.endswith(word)), None)
    return found or "composite"


def unit_of(*dtypes: str) -> float:
    """The coarsest rounding among the types involved; 0 when none of them is a float."""
    return max((UNIT_ROUNDOFF.get(dtype, 0.0) for dtype in dtypes), default=0.0)


def at_rest(dtypes: Sequence[str]) -> Allowance:
    """What a stored parameter may differ by."""
    unit = unit_of(*dtypes)
    return Allowance((AT_REST if unit <= _SINGLE else SAFETY_NARROW) * unit, unit)


def allowance(
    node_type: str,
    shape: tuple[int, ...],
    found: Measures,
    beside: Sequence[Side],
    *,
    unit: float,
    inherited: float,
    backward: bool = False,
) -> Allowance:
    """What noise explains of a computed tensor.

    `beside` are the node's inputs and parameters; `inherited` the largest relative error among those that are close.
    """
    family = family_of(node_type)
    inputs = [side for side in beside if side.role not in ("param", "buffer")]
    weights = [side for side in beside if side.role == "param" and len(side.shape) >= 2]
    length = reduction_length(family, shape, inputs, weights)
    narrow = unit > _SINGLE
    # Narrow types are summed in float32 inside the kernels, so a longer sum costs float32 units.
    own = 2 * unit + (min(unit, _SINGLE) if narrow else unit) * math.sqrt(length) / 4
    if family in ("composite", "softmax"):
        own *= 3
    elif family == "linear" and len(shape) == 4:
        own *= 2  # Winograd convolutions trade accuracy for speed
    hidden = 1.0 if backward else cancellation(family, found, inputs, weights, length)
    gain = _GAIN[family] * hidden
    if family == "softmax" and inputs and not backward:
        # An absolute error in a logit is a relative error in its probability.
        gain = max(gain, 4 * inputs[0].measures.scale)
        own = max(own, unit * inputs[0].measures.scale)
    total = (SAFETY_NARROW if narrow else SAFETY) * own * hidden + SAFETY_INHERITED * inherited * gain
    return Allowance(total * (BACKWARD if backward else 1.0), unit, length)


def reduction_length(family: Family, shape: tuple[int, ...], inputs: Sequence[Side], weights: Sequence[Side]) -> int:
    """How many numbers were added up for one element of the result, as far as shapes tell."""
    count = int(np.prod(shape, dtype=np.int64)) if shape else 1
    widest = max((math.prod(side.shape) for side in inputs), default=count)
    if family in ("copy", "pointwise"):
        return 1
    if family == "linear":
        if weights:
            return max(math.prod(side.shape[1:]) for side in weights)
        return max((side.shape[-1] for side in inputs if side.shape), default=1)
    if family == "sum":
        return max(1, widest // max(count, 1))
    if family == "norm":
        last = max((side.shape for side in inputs if side.shape), default=shape, key=math.prod)
        return max(1, math.prod(last[1:]) if len(last) > 1 else math.prod(last))
    if family == "softmax":
        return max((side.shape[-1] for side in inputs if side.shape), default=1)
    inner = sum(math.prod(side.shape[1:]) for side in weights)
    return max(inner, max((side.shape[-1] for side in inputs if side.shape), default=1), widest // max(count, 1))


def cancellation(
    family: Family, found: Measures, inputs: Sequence[Side], weights: Sequence[Side], length: int
) -> float:
    """What the terms would add up to at random, against what they added up to: 1 when nothing cancels."""
    if not inputs or not found.scale:
        return 1.0
    largest = max(side.measures.scale for side in inputs)
    if family == "linear" and weights:
        terms = math.sqrt(length) * largest * max(side.measures.scale for side in weights)
    elif family == "linear" and len(inputs) >= 2:
        terms = math.sqrt(length) * math.prod(sorted(side.measures.scale for side in inputs)[-2:])
    elif family == "sum":
        terms = largest / math.sqrt(length)
    elif family == "pointwise" and len(inputs) >= 2:
        terms = largest
    else:
        return 1.0
    return max(1.0, terms / found.scale)


def gradient_cancellation(
    found: Measures,
    shape: tuple[int, ...],
    incoming: Side | None,
    inputs: Sequence[Side],
    weights: Sequence[Side],
    role: str,
) -> float:
    """The same for a gradient: a bias before a BatchNorm has gradient 0, and what is left of it is all rounding."""
    if incoming is None or not found.scale:
        return 1.0
    arriving = incoming.measures.scale
    if role == "grad":
        count = max(1, math.prod(shape))
        positions = max(1, incoming.measures.count // (shape[0] if shape else 1))
        terms = math.sqrt(positions) * arriving
        if len(shape) >= 2 and inputs and count > 1:
            terms *= max(side.measures.scale for side in inputs)
    else:
        fan_out = max((side.shape[0] for side in weights), default=1)
        terms = math.sqrt(fan_out) * arriving * max((side.measures.scale for side in weights), default=1.0)
    return max(1.0, terms / found.scale)


def norm_gain(node_type: str, given: NDArray[Any], weight_shape: tuple[int, ...]) -> float:
    """How a normalisation enlarges relative errors: it subtracts the mean and divides by what is left.

    The root mean square over the groups of rms(x) / std(x), with the usual epsilon so that a dead channel stays finite.
    """
    kind = canonical_type(node_type)
    values = np.asarray(given, dtype=np.float64)
    if values.ndim < 2 or not values.size:
        return 1.0
    if "batchnorm" in kind:
        axes: tuple[int, ...] = (0, *range(2, values.ndim))
    elif "group" in kind or "instance" in kind:
        axes = tuple(range(2, values.ndim)) or (values.ndim - 1,)
    else:
        axes = tuple(range(values.ndim - max(1, len(weight_shape)), values.ndim))
    variance = values.var(axis=axes)
    square = (values**2).mean(axis=axes)
    return max(1.0, math.sqrt(float(np.mean(square / (variance + 1e-5)))))
