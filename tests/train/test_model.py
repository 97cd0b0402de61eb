from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from misstep.errors import TrainError
from misstep.train import Callback, GeneratorDataset, LambdaCallback, LossMonitor, Model, RunContext

from .conftest import Kit, losses_by_hand, regression

CLOSE = 1e-5  # float32 sums of eight products, after ten updates


class Story(Callback):
    """Writes down everything that happens."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.lines: list[str] = []
        self.stop_at = stop_at

    def begin(self, run_context: RunContext) -> None:
        self.lines.append("begin")

    def epoch_begin(self, run_context: RunContext) -> None:
        self.lines.append(f"epoch {run_context.original_args().cur_epoch_num} begin")

    def step_begin(self, run_context: RunContext) -> None:
        self.lines.append(f"step {run_context.original_args().cur_step_num} begin")

    def step_end(self, run_context: RunContext) -> None:
        step = run_context.original_args().cur_step_num
        self.lines.append(f"step {step} end")
        if step == self.stop_at:
            run_context.request_stop()

    def epoch_end(self, run_context: RunContext) -> None:
        self.lines.append(f"epoch {run_context.original_args().cur_epoch_num} end")

    def end(self, run_context: RunContext) -> None:
        self.lines.append("end")


def model_of(kit: Kit, **options: Any) -> Model:
    network = kit.linear()
    return Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network), **options)


def recorded_losses(model: Model, epochs: int, data: Any) -> list[float]:
    losses: list[float] = []
    watch = LambdaCallback(on_train_step_end=lambda run: losses.append(float(run.original_args().net_outputs)))
    model.train(epochs, data, callbacks=watch)
    return losses


def test_training_is_gradient_descent(kit: Kit) -> None:
    data = regression()
    assert recorded_losses(model_of(kit), 2, data) == pytest.approx(losses_by_hand(data, epochs=2), rel=CLOSE)


@pytest.mark.mindspore
def test_training_in_graph_mode_is_the_same_gradient_descent(graph_mode: None) -> None:
    from .conftest import KITS

    data = regression()
    found = recorded_losses(model_of(KITS["mindspore"]), 2, data)
    assert found == pytest.approx(losses_by_hand(data, epochs=2), rel=CLOSE)


def test_callbacks_run_in_order_and_a_stop_still_ends_epoch_and_training(kit: Kit) -> None:
    story = Story(stop_at=3)
    model_of(kit).train(2, regression(2), callbacks=story)
    assert story.lines == [
        "begin",
        "epoch 1 begin",
        "step 1 begin",
        "step 1 end",
        "step 2 begin",
        "step 2 end",
        "epoch 1 end",
        "epoch 2 begin",
        "step 3 begin",
        "step 3 end",
        "epoch 2 end",
        "end",
    ]


def test_callbacks_of_one_moment_run_in_the_order_of_the_list(kit: Kit) -> None:
    told: list[str] = []
    callbacks = [LambdaCallback(on_train_step_end=lambda _, name=name: told.append(name)) for name in "abc"]
    model_of(kit).train(1, regression(2), callbacks=callbacks)
    assert told == ["a", "b", "c", "a", "b", "c"]


def test_the_documented_attributes_are_there_and_users_may_add_their_own(kit: Kit) -> None:
    seen: dict[str, Any] = {}

    class Look(Callback):
        def begin(self, run_context: RunContext) -> None:
            run_context.original_args().mine = 42

        def step_end(self, run_context: RunContext) -> None:
            seen.update(run_context.original_args())

    network, loss = kit.linear(), kit.mse()
    optimizer, data = kit.sgd(network), regression(3)
    Model(network, loss_fn=loss, optimizer=optimizer).train(2, data, callbacks=[Look()])
    assert seen["loss_fn"] is loss
    assert seen["optimizer"] is optimizer
    assert seen["network"] is network
    assert seen["train_dataset"] is data
    assert seen["train_dataset_element"] is data[-1]
    expected = {"epoch_num": 2, "batch_num": 3, "cur_epoch_num": 2, "cur_step_num": 6, "mode": "train", "mine": 42}
    assert {name: seen[name] for name in expected} == expected
    assert {"train_network", "parallel_mode", "list_callback", "net_outputs", "dataset_sink_mode"} <= set(seen)


def test_an_unknown_attribute_is_an_attribute_error_with_the_nearest_name() -> None:
    context = RunContext({"cur_step_num": 1})
    with pytest.raises(AttributeError, match="did you mean cur_step_num"):
        _ = context.original_args().cur_step_numb
    assert not hasattr(context.original_args(), "missing")


def test_initial_epoch_counts_as_done(kit: Kit) -> None:
    story = Story()
    model_of(kit).train(3, regression(1), callbacks=story, initial_epoch=2)
    assert story.lines == ["begin", "epoch 3 begin", "step 1 begin", "step 1 end", "epoch 3 end", "end"]


def test_three_columns_are_refused_by_name(kit: Kit) -> None:
    x, y = regression(1)[0]
    data = GeneratorDataset([(x, y, y)], ["data", "label", "weight"], shuffle=False)
    with pytest.raises(TrainError, match=r"gives 3 columns \(data, label, weight\), but loss_fn needs two"):
        model_of(kit).train(1, data)
    with pytest.raises(TrainError, match=r"3 columns \(data, label, weight\)"):
        model_of(kit).train(1, [{"data": x, "label": y, "weight": y}])


def test_a_dataset_that_promises_more_than_it_has_is_told_so(kit: Kit) -> None:
    class Liar(list[Any]):
        def __len__(self) -> int:
            return 9

    with pytest.raises(TrainError, match=r"says it has 9 batches, but epoch 1 gave 2; make Liar\.__len__"):
        model_of(kit).train(1, Liar(regression(2)))


def test_a_dataset_that_has_more_than_it_promises_is_told_so(kit: Kit) -> None:
    class Liar(list[Any]):
        def __len__(self) -> int:
            return 1

    with pytest.raises(TrainError, match="says it has 1 batches, but epoch 1 gave more than 1"):
        model_of(kit).train(1, Liar(regression(2)))


def test_a_generator_serves_one_epoch_and_the_second_explains_itself(kit: Kit) -> None:
    def batches() -> Iterator[Any]:
        yield from regression(2)

    model_of(kit).train(1, batches())
    with pytest.raises(TrainError, match="gave no batch in epoch 2: it is an iterator and was used up"):
        model_of(kit).train(2, batches())


def test_a_torch_dataloader_feeds_either_framework(kit: Kit) -> None:
    import torch

    data = regression(4)
    x, y = (torch.tensor(np.concatenate(part)) for part in zip(*data))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
    assert recorded_losses(model_of(kit), 1, loader) == pytest.approx(losses_by_hand(data), rel=CLOSE)


@pytest.mark.mindspore
def test_a_mindspore_dataset_feeds_either_framework(kit: Kit) -> None:
    from mindspore import dataset as ds

    data = regression(4)
    x, y = (np.concatenate(part) for part in zip(*data))
    source = ds.NumpySlicesDataset((x, y), ["data", "label"], shuffle=False).batch(8)
    assert recorded_losses(model_of(kit), 2, source) == pytest.approx(losses_by_hand(data, epochs=2), rel=CLOSE)


def test_a_network_that_returns_its_loss_needs_no_loss_function(kit: Kit) -> None:
    from misstep.train import WithLossCell

    network = kit.linear()
    model = Model(WithLossCell(network, kit.mse()), optimizer=kit.sgd(network))
    data = regression()
    assert recorded_losses(model, 1, data) == pytest.approx(losses_by_hand(data), rel=CLOSE)


def test_eval_measures_what_it_was_asked_for(kit: Kit) -> None:
    data = regression(3)
    result = model_of(kit, metrics={"loss", "mse", "mae"}).eval(data)
    by_hand = [x @ np.array([[0.5, -0.25, 0.125, 1.0]]).T + 0.1 - y for x, y in data]
    error = np.concatenate(by_hand)
    assert result == {
        "loss": pytest.approx((error**2).mean(), rel=CLOSE),
        "mse": pytest.approx((error**2).mean(), rel=CLOSE),
        "mae": pytest.approx(np.abs(error).mean(), rel=CLOSE),
    }


def test_evaluating_tells_callbacks_by_both_names(kit: Kit) -> None:
    story = Story()
    told: list[str] = []
    long_names = LambdaCallback(
        on_eval_begin=lambda _: told.append("eval begin"),
        on_eval_step_end=lambda _: told.append("eval step"),
        on_train_begin=lambda _: told.append("never"),
        on_eval_end=lambda run: told.append(f"eval end {sorted(run.original_args().metrics)}"),
    )
    story_eval: list[str] = story.lines

    class NoEpoch(Story):
        def epoch_begin(self, run_context: RunContext) -> None:
            story_eval.append("epoch begin")

        def epoch_end(self, run_context: RunContext) -> None:
            story_eval.append("epoch end")

    short = NoEpoch()
    short.lines = story_eval
    model_of(kit, metrics={"loss"}).eval(regression(1), callbacks=[short, long_names])
    assert story_eval == ["begin", "epoch begin", "step 1 begin", "step 1 end", "epoch end", "end"]
    assert told == ["eval begin", "eval step", "eval end ['loss']"]


def test_fit_evaluates_between_epochs_and_shows_the_result_at_the_end_of_the_epoch(kit: Kit) -> None:
    seen: list[tuple[int, list[str]]] = []

    def look(run: RunContext) -> None:
        params = run.original_args()
        seen.append((params.cur_epoch_num, sorted(params.get("eval_results", {}))))

    model = model_of(kit, metrics={"mse"})
    model.fit(
        3, regression(2), regression(1, seed=1), valid_frequency=2, callbacks=LambdaCallback(on_train_epoch_end=look)
    )
    assert seen == [(1, []), (2, ["eval_loss", "mse"]), (3, [])]


def test_short_names_hear_only_the_training_part_of_fit(kit: Kit) -> None:
    story = Story()
    model_of(kit, metrics={"mse"}).fit(1, regression(1), regression(1), callbacks=story)
    assert story.lines == ["begin", "epoch 1 begin", "step 1 begin", "step 1 end", "epoch 1 end", "end"]


def test_evaluating_in_the_middle_of_training_leaves_dropout_on(kit: Kit) -> None:
    network = kit.dropout_net()
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network, 0.0), metrics={"loss"})
    modes: list[tuple[bool, bool]] = []

    def evaluate(run: RunContext) -> None:
        model.eval(regression(1))
        model.predict(regression(1)[0][0])
        modes.append((network.training, network[1].training))

    model.train(1, regression(2), callbacks=LambdaCallback(on_train_step_end=evaluate))
    assert modes == [(True, True), (True, True)]


def test_predict_is_the_network_in_evaluation_behaviour(kit: Kit) -> None:
    network = kit.dropout_net()
    model = Model(network)
    x = regression(1)[0][0]
    first, second = (np.asarray(model.predict(kit.tensor(x)).numpy() if kit.name == "torch"
                                else model.predict(kit.tensor(x)).asnumpy()) for _ in range(2))  # fmt: skip
    assert np.array_equal(first, second)


def test_an_evaluation_network_of_ones_own_is_measured_by_its_indexes(kit: Kit) -> None:
    network = kit.linear()
    if kit.name == "torch":
        import torch

        class Evaluate(torch.nn.Module):
            def forward(self, x: Any, y: Any) -> Any:
                return y, network(x), ((network(x) - y) ** 2).mean()

        own: Any = Evaluate()
    else:
        own = _mindspore_evaluation(network)
    data = regression(2)
    options: dict[str, Any] = {"metrics": {"loss", "mse"}, "eval_network": own, "eval_indexes": [2, 1, 0]}
    result = Model(network, **options).eval(data)
    assert result == pytest.approx(model_of(kit, metrics={"loss", "mse"}).eval(data), rel=CLOSE)


def _mindspore_evaluation(network: Any) -> Any:
    from mindspore import nn

    class Evaluate(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def construct(self, x, y):  # type: ignore[no-untyped-def]
            return y, self.network(x), ((self.network(x) - y) ** 2).mean()

    return Evaluate()


def test_a_model_says_what_is_missing(kit: Kit) -> None:
    network = kit.linear()
    with pytest.raises(TrainError, match="no optimizer, so it cannot train"):
        Model(network, loss_fn=kit.mse()).train(1, regression(1))
    with pytest.raises(TrainError, match="this Model has none"):
        Model(network, loss_fn=kit.mse()).eval(regression(1))
    with pytest.raises(TrainError, match="no prediction to measure"):
        Model(network, metrics={"mse"}).eval(regression(1))
    with pytest.raises(TrainError, match=r"unknown metric 'acuracy'; did you mean .*accuracy"):
        Model(network, loss_fn=kit.mse(), metrics={"acuracy"})
    with pytest.raises(TrainError, match="unknown amp_level 'O9'; levels are O0, O1, O2, O3, auto"):
        Model(network, amp_level="O9")  # type: ignore[arg-type]
    with pytest.raises(TrainError, match="from 1 on, got 0"):
        model_of(kit).train(0, regression(1))


def test_what_is_neither_module_nor_cell_is_refused() -> None:
    with pytest.raises(TrainError, match=r"network is a str, neither a torch\.nn\.Module nor a mindspore\.nn\.Cell"):
        Model("net")


def test_a_class_in_place_of_a_callback_is_told_apart(kit: Kit) -> None:
    with pytest.raises(TrainError, match=r"LossMonitor is a class; callbacks take objects:  LossMonitor\(\)"):
        model_of(kit).train(1, regression(1), callbacks=[LossMonitor])  # type: ignore[list-item]


def test_sink_mode_says_that_it_does_nothing_here(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[bool] = []
    watch = LambdaCallback(on_train_step_end=lambda run: seen.append(run.original_args().dataset_sink_mode))
    model_of(kit).train(1, regression(2), callbacks=watch, dataset_sink_mode=True)
    assert seen == [False, False]
    assert "dataset_sink_mode has no effect on this device" in caplog.text


@pytest.mark.mindspore
def test_mindspores_own_callbacks_work_here(capsys: pytest.CaptureFixture[str]) -> None:
    import mindspore as ms

    from .conftest import KITS

    model_of(KITS["mindspore"]).train(1, regression(1), callbacks=[ms.train.LossMonitor()])
    assert capsys.readouterr().out.startswith("epoch: 1 step: 1, loss is ")


@pytest.mark.mindspore
def test_an_optimizer_that_never_updates_on_a_cpu_is_warned_about() -> None:
    from mindspore import mint

    from .conftest import KITS

    network = KITS["mindspore"].linear()
    with pytest.warns(UserWarning, match=r"mint\.optim\.SGD leaves the weights unchanged on a CPU"):
        Model(network, loss_fn=KITS["mindspore"].mse(), optimizer=mint.optim.SGD(network.trainable_params(), lr=0.1))


def test_mixed_precision_trains_in_half_precision_and_keeps_float32_weights(kit: Kit) -> None:
    data = regression()
    for level in ("O1", "O2", "auto"):
        network = kit.linear()
        model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network), amp_level=level)  # type: ignore[arg-type]
        losses = recorded_losses(model, 2, data)
        assert losses == pytest.approx(losses_by_hand(data, epochs=2), rel=0.05, abs=0.05)
        assert kit.weight(network).dtype == np.float32


def test_o3_trains_too(kit: Kit) -> None:
    network = kit.linear()
    model = Model(network, loss_fn=kit.mse(), optimizer=kit.sgd(network), amp_level="O3")
    data = regression()
    # Half-precision weights have eleven bits: one part in a thousand a step.
    assert recorded_losses(model, 2, data) == pytest.approx(losses_by_hand(data, epochs=2), rel=0.05, abs=0.05)
