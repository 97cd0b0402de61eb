"""What misstep concludes: the verdict on the first bad value, and findings about anything wrong or slow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from misstep.core.graph import Phase, Source
from misstep.core.watching.watch import Severity
from misstep.sentences import verdict as texts
from misstep.sentences import words
from misstep.sentences.text import Sentence, clauses

Precision = Literal["operator", "module", "step"]
"""How exactly the place is known: the operator and line, the module, or only the step."""


@dataclass(frozen=True, slots=True)
class TensorFact:
    """A tensor in a sentence: its address and what was in it."""

    address: str
    description: str
    nan: int = 0
    inf: int = 0
    count: int = 0
    min: float | None = None
    max: float | None = None
    shape: tuple[int, ...] = ()
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where the first bad value of the run was born."""

    step: int
    rank: int
    phase: Phase
    kind: Literal["nan", "inf"]
    node: str
    op: str = ""
    """The operator (`aten.log`), or the module's type when only the module is known."""
    source: Source | None = None
    inputs: tuple[TensorFact, ...] = ()
    outputs: tuple[TensorFact, ...] = ()
    precision: Precision = "step"
    exact: str = ""
    """After a replay: 'exact', or why it was not."""
    note: str = ""

    @property
    def moment(self) -> tuple[int, int, int]:
        """Sorts verdicts by birth: in one step, rank 1's forward comes before the backward that spread it to rank 0."""
        phases = get_args(Phase)
        return self.step, phases.index(self.phase) if self.phase in phases else len(phases), self.rank

    @property
    def replayed(self) -> str:
        """That the step was replayed, and how exactly; empty when it was not."""
        return texts.REPLAYED.of(exact=self.exact) if self.exact else ""

    def sentence(self) -> Sentence:
        """'step 412, forward, blocks.3: output has 1,204 NaN, inputs were finite; train.py:87 `y = torch.log(y)`'."""
        place = f"{self.node}" + (f" ({self.op})" if self.op and self.op not in self.node else "")
        said = texts.PLACE.of(step=self.step, phase=words.word(words.PHASES, self.phase), place=place)
        if self.outputs:
            first = self.outputs[0]
            role = first.address.partition(":")[2].partition("@")[0] or "output"
            said = texts.ROLE_HAS.of(place=said, role=role, found=first.description)
        parts: list[str] = [said]
        if self.inputs:
            bad = [fact for fact in self.inputs if fact.nan or fact.inf]
            parts.append(texts.INPUT_BAD.of(address=bad[0].address) if bad else texts.INPUTS_FINITE.of())
        if self.source is not None:
            parts.append(str(self.source))
        return clauses(parts) if len(parts) > 1 else said


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong or slow, with its evidence and the next command."""

    rule: str
    title: str
    severity: Severity = "warning"
    step: int | None = None
    rank: int | None = None
    evidence: tuple[str, ...] = ()
    """Addresses, steps and figures, each a short sentence."""
    advice: str = ""
    command: str = ""
    detail: dict[str, float | int | str] = field(default_factory=dict)
    confidence: float | None = None
    """How sure the rule is, between 0 and 1; None for what is certain or was never rated."""
    source: str = ""
    """The user's line it is about: `train.py:41 `model.head = nn.Linear(512, 37)``."""
    cause: str = ""
    """The rule of the finding that explains this one: then there is nothing to do about it on its own."""
