"""What of the contract MindSpore's graph mode keeps by other means, or cannot keep, and why. Every other fact of it is
tested there as it stands; docs/write_mindspore.py makes the support table of this."""

from __future__ import annotations

STORY = "tests/stories/test_mindspore_graph_mode.py"
FAILURES = "tests/stories/test_mindspore_failures.py"
NODES = f"{STORY}::test_every_node_of_a_chosen_step_has_rows_in_execution_order_and_raw_files_are_gone"
KNOWN = f"{STORY}::test_at_module_level_the_graph_is_known_and_no_tensor_was_dumped"
FORWARD = f"{STORY}::test_log_of_a_negative_is_named_by_node_and_line"
BACKWARD = f"{STORY}::test_a_bad_derivative_is_named_by_the_line_of_its_forward"
COMPILE = f"{FAILURES}::test_a_network_that_does_not_compile_is_a_run_with_the_line_and_the_node"
WALK = "tests/adapters/mindspore/test_eager.py::test_whoever_walks_from_node_to_node_walks_through_a_compiled_step"

REASONS = {
    "modules": (
        "not at module level: Python sees nothing inside compiled code; nodes come with `--level op`",
        "module 级没有：编译后的代码内部 Python 看不到；节点数据用 `--level op`",
    ),
    "batch": (
        "told as a bad loss: the batch goes into compiled code; nodes come with `--level op`",
        "报告为损失异常：批数据直接进入编译后的代码；节点数据用 `--level op`",
    ),
    "capsule": (
        "no capsules: compiled code cannot be given other weights; `misstep replay` says what to run instead",
        "没有 capsule：编译的代码换不进别的权重；`misstep replay` 会提示改用什么命令",
    ),
}

ELSEWHERE: dict[str, str] = {
    "rows_stand_in_execution_order": NODES,
    "the_nodes_are_modules_and_parameters_named_by_their_path": KNOWN,
    "the_graph_knows_who_consumed_an_output": KNOWN,
    "a_tensor_that_passes_several_places_is_summarised_once": "modules",
    "a_module_called_twice_has_two_calls": "modules",
    "tensors_in_nested_outputs_are_slots": "modules",
    "at_op_level_an_operator_stands_below_its_module_with_the_users_line": NODES,
    "a_bad_batch_is_told_from_a_bad_model": "batch",
    "a_bad_value_born_in_forward_is_told_from_its_offspring": FORWARD,
    "a_bad_value_born_in_forward_is_named_by_operator_and_line": FORWARD,
    "a_bad_value_born_in_backward_is_blamed_on_the_module_that_made_it": "modules",
    "a_bad_value_born_in_backward_is_blamed_on_the_innermost_module": "modules",
    "a_bad_value_born_in_backward_is_named_by_operator_and_line": BACKWARD,
    "an_exception_of_the_users_code_passes_unchanged_and_is_told_once": COMPILE,
    "while_stepping_every_module_and_the_optimizer_are_places": WALK,
}
"""By fact of the contract: the test that proves it in its own way, or a reason of REASONS why there is none."""

AGAIN: dict[str, str] = {
    "a_capsule_plays_the_same_step_bit_for_bit_in_a_training_that_never_came_to_it": "capsule",
    "a_program_that_computes_something_else_is_told_from_the_recorded_step": "capsule",
    "a_capsule_that_would_be_too_large_is_refused_with_the_way_out": "capsule",
}
"""The same for the contract of steps that are run again."""
