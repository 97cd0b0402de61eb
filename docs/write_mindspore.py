"""Writes the support table of docs/mindspore.md and its Chinese twin, from the contract every adapter is tested with.

PyNative keeps the whole contract. For graph mode each fact of it is either proven by a test of its own or does not
apply, with the reason. A fact added to the contract and not decided here fails tests/project/test_mindspore_page.py.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTRACT = ROOT / "tests" / "contract" / "adapter_contract.py"
PAGES = {"en": "mindspore.md", "zh": "mindspore.zh.md"}
BEGIN, END = "<!-- support table, written by docs/write_mindspore.py -->", "<!-- end of the support table -->"

REASONS = {
    "modules": (
        "not at module level: Python sees nothing inside compiled code; nodes come with `--level op`",
        "module 级没有：编译后的代码内部 Python 看不到；节点数据用 `--level op`",
    ),
    "gradients": (
        "where the optimizer is called by itself; otherwise with `--level op`",
        "优化器单独调用时可见；否则用 `--level op`",
    ),
    "same": ("the same code as PyNative", "与 PyNative 同一份代码"),
    "guard": ("weights; gradients where the optimizer is called by itself", "权重；优化器单独调用时还有梯度"),
    "eval": (
        "compiled evaluation marks no step and leaves no rows at module level",
        "编译的评估不计轮次，module 级不留行",
    ),
    "update": ("weights before and after the compiled step", "编译步骤前后的权重"),
}

GRAPH = "tests/adapters/mindspore/test_graph_mode.py"
STORY = "tests/stories/test_mindspore_graph_mode.py"
FAILURES = "tests/stories/test_mindspore_failures.py"
LOOP = f"{GRAPH}::test_a_compiled_loop_tells_steps_weights_and_loss"
WEIGHT = f"{STORY}::test_a_weight_is_shown_as_the_update_left_it_and_as_the_forward_read_it"
NODES = f"{STORY}::test_every_node_of_a_chosen_step_has_rows_in_execution_order_and_raw_files_are_gone"
KNOWN = f"{STORY}::test_at_module_level_the_graph_is_known_and_no_tensor_was_dumped"
FORWARD = f"{STORY}::test_log_of_a_negative_is_named_by_node_and_line"
BACKWARD = f"{STORY}::test_a_bad_derivative_is_named_by_the_line_of_its_forward"
UPDATE = f"{STORY}::test_an_optimizer_that_writes_nan_is_blamed"
IDENTICAL = f"{STORY}::test_training_is_bit_identical_at_every_level"
EAGER = "tests/adapters/mindspore/test_eager.py"
WALK = f"{EAGER}::test_whoever_walks_from_node_to_node_walks_through_a_compiled_step"
AGREE = f"{EAGER}::test_every_step_in_both_modes_agrees_and_leaves_no_trace"
COMPILE = f"{FAILURES}::test_a_network_that_does_not_compile_is_a_run_with_the_line_and_the_node"

GRAPH_MODE: dict[str, str] = {
    "every_step_tells_before_update_then_after_update_then_step_done": LOOP,
    "the_first_update_is_step_1_and_the_weights_before_it_are_step_0": LOOP,
    "an_update_says_loss_learning_rate_and_optimizer": LOOP,
    "every_row_holds_what_numpy_computes": WEIGHT,
    "rows_stand_in_execution_order": NODES,
    "the_nodes_are_modules_and_parameters_named_by_their_path": KNOWN,
    "the_graph_knows_who_consumed_an_output": KNOWN,
    "a_tensor_that_passes_several_places_is_summarised_once": "modules",
    "a_module_called_twice_has_two_calls": "modules",
    "a_shared_weight_is_one_parameter": "same",
    "micro_batches_before_one_update_are_one_step": "same",
    "tensors_in_nested_outputs_are_slots": "modules",
    "evaluation_between_steps_leaves_no_rows": "eval",
    "a_convolutional_network_is_seen_whole_and_healthy": "modules",
    "every_level_marks_the_steps": LOOP,
    "off_keeps_no_rows": "same",
    "guard_keeps_the_loss_of_a_healthy_step_and_nothing_else": "same",
    "guard_tells_which_gradients_and_weights_are_bad": "guard",
    "the_level_may_change_between_steps": NODES,
    "at_op_level_an_operator_stands_below_its_module_with_the_users_line": NODES,
    "a_bad_batch_is_told_from_a_bad_model": "modules",
    "a_bad_value_born_in_forward_is_told_from_its_offspring": FORWARD,
    "a_bad_value_born_in_forward_is_named_by_operator_and_line": FORWARD,
    "a_bad_value_born_in_backward_is_blamed_on_the_module_that_made_it": "modules",
    "a_bad_value_born_in_backward_is_blamed_on_the_innermost_module": "modules",
    "a_bad_value_born_in_backward_is_named_by_operator_and_line": BACKWARD,
    "a_bad_value_written_by_the_optimizer_is_the_optimizers": UPDATE,
    "a_bad_weight_with_a_finite_gradient_is_an_origin": UPDATE,
    "training_is_bit_identical_with_and_without": IDENTICAL,
    "detach_leaves_nothing": "same",
    "a_failure_of_the_listener_is_its_trouble_and_training_goes_on": "same",
    "an_exception_of_the_users_code_passes_unchanged_and_is_told_once": COMPILE,
    "who_wants_a_tensor_gets_it_with_its_row": "same",
    "while_stepping_every_module_and_the_optimizer_are_places": WALK,
    "without_stepping_there_are_no_places": AGREE,
    "before_an_update_gradients_are_complete_and_weights_untouched": "gradients",
    "an_adopted_model_is_named_before_it_runs": "same",
    "it_knows_what_it_cost": "same",
    "the_adapter_of_a_model_is_found_by_its_type": "same",
    "it_says_its_version_and_its_rank": "same",
}
"""By fact of the contract: the test that proves it in graph mode, or a reason of REASONS."""


def facts() -> list[str]:
    """The facts of the contract, in its order."""
    return re.findall(r"def test_(\w+)\(", CONTRACT.read_text(encoding="utf-8"))


def table(language: str) -> str:
    """The table as the page holds it."""
    zh = language == "zh"
    head = (
        "| 每个适配器都要满足 | PyNative | 图模式 |" if zh else "| what every adapter keeps | PyNative | graph mode |"
    )
    lines = [head, "| --- | --- | --- |"]
    for fact in facts():
        answer = GRAPH_MODE.get(fact, "")
        said = REASONS[answer][zh] if answer in REASONS else (f"✓ `{answer.rpartition('::')[2]}`" if answer else "?")
        lines.append(f"| {fact.replace('_', ' ')} | ✓ | {said} |")
    return "\n".join([BEGIN, "", *lines, "", END])


def with_table(text: str, language: str) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + table(language) + rest.partition(END)[2]


if __name__ == "__main__":
    for language, name in PAGES.items():
        path = Path(__file__).parent / name
        path.write_text(with_table(path.read_text(encoding="utf-8"), language), encoding="utf-8")
