"""What is known of how a program trains: who holds which weights, who is called in which order, what a step looks like.

    Setup    optimizers and weights, once, and again when they change
    Calls    the order of calls in one step: `z f b c s h`, with the user's lines
    Look     one step from close by: gradients, updates, the batch, the objective, activations

These are small records of a few kilobytes, taken on steps 1, 2, 3, 4, 6, 8, 12, 16 … : a run of a week keeps some
dozens. Every framework fills in what it can see; None means nobody looked, never that nothing was there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FORWARD, EVALUATE, ZERO, BACKWARD, UNSCALE, CLIP, STEP, SCHEDULE, SCALER = "f", "e", "z", "b", "u", "c", "s", "h", "a"
"""Letters of `Calls.order`."""


@dataclass(frozen=True, slots=True)
class WeightFact:
    """One weight at the time of a setup."""

    name: str
    shape: tuple[int, ...] = ()
    trainable: bool = True
    """requires_grad."""
    held: tuple[int, ...] = ()
    """Numbers of the optimizers that hold it."""
    times: int = 1
    """How often the optimizers hold it, all groups together."""
    known: bool = True
    """It belongs to a network of the program."""
    std: float | None = None
    constant: bool = False
    """All elements are the same."""


@dataclass(frozen=True, slots=True)
class OptimizerFact:
    """One optimizer, as it was made."""

    number: int
    type: str
    source: str = ""
    """The user's line that made it."""
    groups: tuple[dict[str, float], ...] = ()
    """Options of each group that are numbers: lr, momentum, weight_decay, eps, beta1 …"""
    strange: int = 0
    """Weights it holds that no network of the program has."""
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Setup:
    """Who holds what."""

    step: int
    weights: tuple[WeightFact, ...] = ()
    optimizers: tuple[OptimizerFact, ...] = ()
    replaced: dict[str, str] = field(default_factory=dict)
    """By name of a weight that was put in after the optimizers were made: the user's line, where it is known."""
    world: int = 1
    sharded: bool = False
    """Every rank holds another part of the weights, so that they may differ."""


@dataclass(frozen=True, slots=True)
class Calls:
    """What the program called in one step, in order."""

    step: int
    order: str = ""
    lines: dict[str, str] = field(default_factory=dict)
    """By letter: the user's line."""
    counts: dict[str, int] = field(default_factory=dict)
    """By letter: calls since training began."""
    leftover: int = 0
    """Updates of which the gradients still held those of the update before."""
    leftover_part: int = 0
    """… in some weights, but not in all."""
    judged: int = 0
    """Updates looked at for that."""
    skipped: int = 0
    """Updates a gradient scaler left out."""
    steps: int = 0
    """Steps of training so far."""
    rates: tuple[tuple[float, ...], ...] = ()
    """Learning rates by optimizer and group."""


@dataclass(frozen=True, slots=True)
class WeightLook:
    """One weight in one step."""

    name: str
    norm: float | None = None
    gradient: float | None = None
    """Norm of the gradient; None where there is none."""
    update: float | None = None
    """Norm of the change, over norm of the weight, in a sample of its elements."""
    moved: bool = True
    reached: bool | None = None
    """Whether the loss was computed from it; None when the graph was not walked."""
    alike: bool = False
    """All units (rows) are the same."""
    digest: str = ""
    """Of a sample of its elements, before the update."""


@dataclass(frozen=True, slots=True)
class TensorLook:
    """Values of a tensor that goes into a network or a loss."""

    shape: tuple[int, ...]
    dtype: str
    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0
    std: float = 0.0
    distinct: float | None = None
    """Share of samples of the batch that differ from all others."""
    constant: float | None = None
    """Share of features with the same value in every sample."""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """One known loss function inside the objective, with what goes into it."""

    kind: str
    """`cross_entropy`, `nll`, `bce_logits`, `bce`, `mse`, `l1`, `huber`, `kl`; empty: none that is known."""
    above: tuple[str, ...] = ()
    """Operators from the loss given to backward down to this function: `neg`, `mul`, `mean` …"""
    below: tuple[str, ...] = ()
    """Operators from this function back to the last layer with weights: `softmax`, `view` …"""
    layer: str = ""
    """That layer."""
    reduction: str = ""
    prediction: TensorLook | None = None
    target: TensorLook | None = None
    classes: int | None = None
    top_target: float | None = None
    """Share of the most frequent class among the targets."""
    top_prediction: float | None = None
    """Share of the most frequent class among the predictions."""
    ignored: float | None = None
    """Share of targets that are left out (ignore_index)."""
    rows_sum_to_one: bool = False
    """The prediction is a distribution already: never negative, and its rows sum to 1."""
    log_rows: bool | None = None
    """For `nll`: whether the rows are log-probabilities."""
    spread: float | None = None
    """How much predictions differ between samples, over their size."""
    softmax_dim: int | None = None
    batch_softmax: bool = False
    """Probabilities were normalised over the samples of the batch instead of the classes."""
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class Objective:
    """How the loss given to backward was made."""

    value: float | None = None
    leaf: bool = False
    """It has no history at all: somebody called requires_grad_() on it."""
    reached: int = 0
    """Weights it was computed from."""
    terms: tuple[Term, ...] = ()
    broadcast: tuple[tuple[int, ...], ...] = ()
    """(shape of the prediction, shape after an operation with the target), where they differ."""
    complete: bool = True
    """The whole graph was walked."""
    shifted: float | None = None
    """Share of targets that are the next token of the input; 1 for a language model."""
    copied: float | None = None
    """Share of targets that are the same token of the input."""
    output: TensorLook | None = None
    """What the network gave."""
    output_spread: float | None = None


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation function in one step."""

    kind: str
    """`relu`, `tanh`, `sigmoid`, `softmax`, `attention` …"""
    layer: str = ""
    """The layer with weights before it."""
    dead: float | None = None
    """Share of units that are 0 (relu) for every sample."""
    saturated: float | None = None
    """Share of elements where the derivative is almost 0."""
    entropy: float | None = None
    """Of attention: mean entropy of its rows, over the largest possible."""
    future: float | None = None
    """Of attention: weight given to later positions."""
    past: float | None = None
    """Of attention: weight given to earlier positions."""
    masked: bool | None = None
    size: float = 0.0
    """Root of the mean square of its output."""


@dataclass(frozen=True, slots=True)
class Modes:
    """Whether the layers that behave differently in training are in training mode."""

    network: bool
    norms: tuple[int, int] = (0, 0)
    """(in training mode, in evaluation mode): layers that keep statistics of the batch."""
    dropouts: tuple[int, int] = (0, 0)
    line: str = ""
    norm_momentum: float | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """One step from close by."""

    step: int
    weights: tuple[WeightLook, ...] = ()
    inputs: tuple[TensorLook, ...] = ()
    objective: Objective | None = None
    activations: tuple[Activation, ...] = ()
    modes: Modes | None = None
    evaluation: Modes | None = None
    """The same network, called without gradients since the look before."""
    clip: tuple[float, float] | None = None
    """(norm of the gradients before, largest norm allowed)."""
    loss_scale: float | None = None
    between: int = 0
    """Weights that changed between the end of the look before and the beginning of this one's step, although the looks
    were of neighbouring steps."""
    undone: bool = False
    """Those weights went back to what they were before the update."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Digests of the batches of the first steps: the same batch again shows here."""

    step: int
    digests: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    loader: bool = False
    """They come from a data loader with more samples than one batch holds."""
    source: str = ""


RECORDS: dict[str, type] = {"setup": Setup, "calls": Calls, "look": Look, "batches": Batches}
Record = Setup | Calls | Look | Batches
