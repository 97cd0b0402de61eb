"""The wiring of a compiled graph, from its .ir text."""

from __future__ import annotations

from pathlib import Path

from misstep.adapters.mindspore.graph.dump_request import iterations_for
from misstep.store.foreign.mindspore.ir import Feed, read_wiring

IR = """
subgraph @kernel_graph0() {
  %0(CNode_1) = Load(%para1_fc.weight, UMonad[U]) cnode_attrs: {checkpoint: Bool(1)}
      : (<Ref[Tensor[Float32]], (4, 8), ref_key=fc.weight, is_parameter, is_inplace>, <UMonad, NoShape>) -> (<Tensor[Float32], (4, 8)>)
      # Fullname with scope: (Default/Load-op0)
  %1(x) = PrimFunc_MatMul(%para2_inputs0, %0, Bool(0), Bool(1)) {instance name: matmul}
      : (<Tensor[Float32], (2, 8)>, <Tensor[Float32], (4, 8)>, <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[Float32], (2, 4)>)
      # Fullname with scope: (Default/fc-Dense/MatMul-op0)
  %2(pair) = Split(%1, (1, 2)) primitive_attrs: {}
      : (<Tensor[Float32], (2, 4)>, <Tuple[Int64]>) -> (<Tuple[Tensor[Float32]*2]>)
      # Fullname with scope: (Default/Split-op0)
  %3(second) = TupleGetItem(%2, I64(1))
      : (<Tuple[Tensor[Float32]*2]>, <Int64, NoShape>) -> (<Tensor[Float32], (1, 4)>)
      # Fullname with scope: (Default/TupleGetItem-op0)
  %4(success) = ApplyMomentum(%para1_fc.weight, %para3_moments.fc.weight, %para4_rate, %3) primitive_attrs: {}
      : (<Ref[Tensor[Float32]], ref_key=fc.weight, is_parameter, is_inplace>, <Ref[Tensor[Float32]], is_parameter, is_inplace>, <Ref[Tensor[Float32]], is_parameter>, <Tensor[Float32], (1, 4)>) -> (<Tensor[Float32], (4, 8)>)
      # Fullname with scope: (Default/optimizer-Momentum/ApplyMomentum-op0)
  %5(both) = MakeTuple(%1, %3)
      # Fullname with scope: (Default/MakeTuple-op0)
  %6(after) = Depend(%5, %4)
      # Fullname with scope: (Default/Depend-op0)
  Return(%6)
      : (<Tuple[Tensor[Float32]*2]>)
      # Fullname with scope: (Default/Return-op0)
}
"""  # noqa: E501


def test_feeds_look_through_what_computes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "graph_0.ir"
    file.write_text(IR)
    wiring = read_wiring(file)
    matmul, split, update = (
        "Default/fc-Dense/MatMul-op0",
        "Default/Split-op0",
        "Default/optimizer-Momentum/ApplyMomentum-op0",
    )
    assert wiring.feeds[matmul][:2] == (Feed("inputs0", parameter=True), Feed("fc.weight", parameter=True))
    assert wiring.feeds[update][3] == Feed(split, 1)
    assert wiring.writes == {update: {0: "fc.weight", 1: "moments.fc.weight"}}
    assert wiring.results == [Feed(matmul), Feed(split, 1)]


def test_chosen_steps_become_iterations_a_little_wider() -> None:
    assert iterations_for("") == iterations_for("100:") == "all"
    assert iterations_for("5,10:12") == "2-6|7-13"
    assert iterations_for("1:2") == "0-3"
