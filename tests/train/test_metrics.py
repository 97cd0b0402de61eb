"""Every metric, on both frameworks and on numpy, against scikit-learn or a value worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
from scipy.spatial.distance import directed_hausdorff

from misstep.errors import TrainError
from misstep.train import metrics
from misstep.train.metrics import Metric

from .conftest import Kit

CLOSE = 1e-6

SCORES = np.random.default_rng(7).normal(size=(60, 6)).astype(np.float32)
LABELS = np.random.default_rng(8).integers(0, 6, 60).astype(np.int32)
BITS = (np.random.default_rng(9).random((40, 5)) > 0.4).astype(np.int32)
TRUE_BITS = (np.random.default_rng(10).random((40, 5)) > 0.5).astype(np.int32)
ANSWERS = SCORES.argmax(axis=1)


def measured(metric: Metric, kit: Kit, *columns: Any, batches: int = 3, **asked: Any) -> Any:
    """A metric fed in several batches of tensors; fed twice, with a clear between, to see that it forgets."""
    for _ in range(2):
        metric.clear()
        for parts in zip(*(np.array_split(column, batches) for column in columns)):
            metric.update(*(kit.tensor(part) for part in parts))
    return metric.eval(**asked)


def test_accuracy_is_scikit_learns(kit: Kit) -> None:
    assert measured(metrics.Accuracy(), kit, SCORES, LABELS) == pytest.approx(
        sk.accuracy_score(LABELS, ANSWERS), abs=CLOSE
    )
    one_hot = np.eye(6, dtype=np.float32)[LABELS]
    assert measured(metrics.Accuracy(), kit, SCORES, one_hot) == pytest.approx(
        sk.accuracy_score(LABELS, ANSWERS), abs=CLOSE
    )
    several = measured(metrics.Accuracy("multilabel"), kit, BITS, TRUE_BITS)
    assert several == pytest.approx(sk.accuracy_score(TRUE_BITS, BITS), abs=CLOSE)


def test_accuracy_of_pictures_counts_pixels(kit: Kit) -> None:
    scores = np.random.default_rng(1).random((3, 4, 5, 5)).astype(np.float32)
    labels = np.random.default_rng(2).integers(0, 4, (3, 5, 5))
    expected = (scores.argmax(axis=1) == labels).mean()
    assert measured(metrics.Accuracy(), kit, scores, labels) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize(("metric", "reference"), [("Precision", sk.precision_score), ("Recall", sk.recall_score)])
def test_precision_and_recall_are_scikit_learns(kit: Kit, metric: str, reference: Any) -> None:
    make = getattr(metrics, metric)
    by_class = measured(make(), kit, SCORES, LABELS)
    assert by_class == pytest.approx(reference(LABELS, ANSWERS, average=None, zero_division=0), abs=CLOSE)
    mean = measured(make(), kit, SCORES, LABELS, average=True)
    assert mean == pytest.approx(reference(LABELS, ANSWERS, average="macro", zero_division=0), abs=CLOSE)
    by_sample = measured(make("multilabel"), kit, BITS, TRUE_BITS, average=True)
    assert by_sample == pytest.approx(reference(TRUE_BITS, BITS, average="samples", zero_division=0), abs=CLOSE)


def test_f_measures_are_scikit_learns(kit: Kit) -> None:
    f1 = measured(metrics.F1(), kit, SCORES, LABELS)
    assert f1 == pytest.approx(sk.f1_score(LABELS, ANSWERS, average=None, zero_division=0), abs=CLOSE)
    f2 = measured(metrics.Fbeta(2), kit, SCORES, LABELS, average=True)
    assert f2 == pytest.approx(sk.fbeta_score(LABELS, ANSWERS, beta=2, average="macro", zero_division=0), abs=CLOSE)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_top_k_is_scikit_learns(kit: Kit, k: int) -> None:
    expected = sk.top_k_accuracy_score(LABELS, SCORES, k=k)
    assert measured(metrics.TopKCategoricalAccuracy(k), kit, SCORES, LABELS) == pytest.approx(expected, abs=CLOSE)
    if k == 1:
        assert measured(metrics.Top1CategoricalAccuracy(), kit, SCORES, LABELS) == pytest.approx(expected, abs=CLOSE)
    if k == 5:
        assert measured(metrics.Top5CategoricalAccuracy(), kit, SCORES, LABELS) == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize(
    ("ours", "theirs"), [("no_norm", None), ("target", "true"), ("prediction", "pred"), ("all", "all")]
)
def test_the_confusion_matrix_is_scikit_learns(kit: Kit, ours: Any, theirs: Any) -> None:
    expected = sk.confusion_matrix(LABELS, ANSWERS, normalize=theirs)
    assert measured(metrics.ConfusionMatrix(6, ours), kit, SCORES, LABELS) == pytest.approx(expected, abs=CLOSE)


def test_scores_of_one_class_are_cut_at_the_threshold(kit: Kit) -> None:
    scores, labels = np.array([0.9, 0.4, 0.6, 0.2], np.float32), np.array([1, 0, 0, 1])
    assert measured(metrics.ConfusionMatrix(2), kit, scores, labels, batches=2).tolist() == [[1, 1], [1, 1]]


def _binary(name: str) -> float:
    actual, predicted = TRUE_BITS[:, 1:].reshape(-1), BITS[:, 1:].reshape(-1)
    tn, fp, fn, tp = sk.confusion_matrix(actual, predicted).ravel().astype(float)
    tpr, tnr, ppv, npv = tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), tn / (tn + fn)
    values: dict[str, float] = {
        "sensitivity": sk.recall_score(actual, predicted),
        "specificity": tnr,
        "precision": sk.precision_score(actual, predicted),
        "negative predictive value": npv,
        "miss rate": 1 - tpr,
        "fall out": 1 - tnr,
        "false discovery rate": 1 - ppv,
        "false omission rate": 1 - npv,
        "prevalence threshold": (math.sqrt(tpr * (1 - tnr)) + tnr - 1) / (tpr + tnr - 1),
        "threat score": sk.jaccard_score(actual, predicted),
        "accuracy": sk.accuracy_score(actual, predicted),
        "balanced accuracy": sk.balanced_accuracy_score(actual, predicted),
        "f1 score": sk.f1_score(actual, predicted),
        "matthews correlation coefficient": sk.matthews_corrcoef(actual, predicted),
        "fowlkes mallows index": math.sqrt(ppv * tpr),
        "informedness": tpr + tnr - 1,
        "markedness": ppv + npv - 1,
    }
    return float(values[name])


@pytest.mark.parametrize(
    "name",
    [
        "sensitivity",
        "specificity",
        "precision",
        "negative predictive value",
        "miss rate",
        "fall out",
        "false discovery rate",
        "false omission rate",
        "prevalence threshold",
        "threat score",
        "accuracy",
        "balanced accuracy",
        "f1 score",
        "matthews correlation coefficient",
        "fowlkes mallows index",
        "informedness",
        "markedness",
    ],
)
def test_numbers_from_the_confusion_matrix_are_right(kit: Kit, name: str) -> None:
    metric = metrics.ConfusionMatrixMetric(metric_name=name)
    assert measured(metric, kit, BITS, TRUE_BITS) == pytest.approx(_binary(name), abs=CLOSE)


def test_the_confusion_metric_of_every_sample_is_joined_leaving_out_the_undefined(kit: Kit) -> None:
    predicted = np.array([[[1, 0], [1, 1]], [[0, 0], [0, 1]]])
    actual = np.array([[[1, 0], [0, 1]], [[0, 0], [0, 1]]])
    # Hit rates by sample and channel: 1/1, 1/1; 0/0, 1/1.
    shaped: dict[str, Any] = {"skip_channel": False, "metric_name": "tpr", "calculation_method": True}
    assert measured(metrics.ConfusionMatrixMetric(**shaped), kit, predicted, actual, batches=2) == pytest.approx(1.0)
    total = metrics.ConfusionMatrixMetric(decrease="sum", **shaped)
    assert measured(total, kit, predicted, actual, batches=2) == pytest.approx(3.0)
    by_channel = metrics.ConfusionMatrixMetric(decrease="sum_batch", **shaped)
    assert measured(by_channel, kit, predicted, actual, batches=2).tolist() == [1.0, 2.0]


def test_the_loss_is_the_mean_over_batches(kit: Kit) -> None:
    metric = metrics.Loss()
    for loss in (0.5, 1.5, 4.0):
        metric.update(kit.tensor(np.float32(loss)))
    assert metric.eval() == pytest.approx(2.0, abs=CLOSE)


def test_errors_are_scikit_learns(kit: Kit) -> None:
    predicted, actual = SCORES[:, 0], SCORES[:, 1]
    mae = measured(metrics.MAE(), kit, predicted, actual)
    mse = measured(metrics.MSE(), kit, predicted, actual)
    assert mae == pytest.approx(sk.mean_absolute_error(actual, predicted), abs=CLOSE)
    assert mse == pytest.approx(sk.mean_squared_error(actual, predicted), abs=CLOSE)


def test_cosine_similarity_is_scikit_learns(kit: Kit) -> None:
    expected = sk.pairwise.cosine_similarity(SCORES)
    plain = measured(metrics.CosineSimilarity(zero_diagonal=False), kit, SCORES)
    assert plain == pytest.approx(expected, abs=CLOSE)
    np.fill_diagonal(expected, 0)
    mean = measured(metrics.CosineSimilarity(reduction="mean"), kit, SCORES)
    assert mean == pytest.approx(expected.mean(axis=-1), abs=CLOSE)


def test_perplexity_is_the_exponential_of_the_log_loss(kit: Kit) -> None:
    chances = np.exp(SCORES) / np.exp(SCORES).sum(axis=1, keepdims=True)
    expected = math.exp(sk.log_loss(LABELS, chances.astype(np.float64), labels=range(6)))
    assert measured(metrics.Perplexity(), kit, chances, LABELS) == pytest.approx(expected, rel=CLOSE)
    kept = LABELS != 2
    expected = math.exp(-np.log(chances.astype(np.float64)[kept, LABELS[kept]]).mean())
    assert measured(metrics.Perplexity(ignore_label=2), kit, chances, LABELS) == pytest.approx(expected, rel=CLOSE)


def test_bleu_of_the_documented_example_is_worked_out_by_hand() -> None:
    candidate = [["i", "have", "a", "pen", "on", "my", "desk"]]
    reference = [[["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]]]
    metric = metrics.BleuScore()
    metric.update(candidate, reference)
    # Runs found: 7 of 7, 5 of 6, 3 of 5, 1 of 4 (the reference lengths are equal, so nothing is taken off).
    assert metric.eval() == pytest.approx((7 / 7 * 5 / 6 * 3 / 5 * 1 / 4) ** 0.25, abs=CLOSE)
    metric.clear()
    metric.update([["a", "b"]], [[["x", "y"]]])
    assert metric.eval() == 0.0


def test_a_translation_that_is_too_short_is_penalised() -> None:
    metric = metrics.BleuScore(n_gram=1)
    metric.update([["a", "b"]], [[["a", "b", "c", "d"]]])
    assert metric.eval() == pytest.approx(math.exp(1 - 4 / 2), abs=CLOSE)


def test_the_roc_curve_and_its_area_are_scikit_learns(kit: Kit) -> None:
    scores, labels = SCORES[:, 0], (LABELS > 2).astype(np.int32)
    expected = sk.roc_curve(labels, scores, drop_intermediate=False)
    across, up, thresholds = measured(metrics.ROC(pos_label=1), kit, scores, labels)
    assert across == pytest.approx(expected[0], abs=CLOSE)
    assert up == pytest.approx(expected[1], abs=CLOSE)
    assert thresholds[1:] == pytest.approx(expected[2][1:], abs=CLOSE)
    assert metrics.auc(across, up) == pytest.approx(sk.roc_auc_score(labels, scores), abs=CLOSE)
    assert measured(metrics.AUC(), kit, scores, labels) == pytest.approx(sk.roc_auc_score(labels, scores), abs=CLOSE)


def test_several_classes_have_a_curve_each(kit: Kit) -> None:
    areas = measured(metrics.AUC(class_num=6), kit, SCORES, LABELS)
    expected = [sk.roc_auc_score(number == LABELS, SCORES[:, number]) for number in range(6)]
    assert areas == pytest.approx(expected, abs=CLOSE)


def test_auc_wants_points_in_order() -> None:
    assert metrics.auc(np.array([1, 2, 3]), np.array([1, 1, 1])) == pytest.approx(2.0)
    assert metrics.auc(np.array([3, 2, 1]), np.array([1, 1, 1])) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="reorder=True"):
        metrics.auc(np.array([1, 3, 2]), np.array([1, 1, 1]))
    assert metrics.auc(np.array([1, 3, 2]), np.array([1, 1, 1]), reorder=True) == pytest.approx(2.0)


def test_dice_is_twice_the_overlap_over_both_sizes(kit: Kit) -> None:
    predicted = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], np.float32)
    actual = np.array([[1, 0, 0, 0], [1, 0, 0, 0]], np.float32)
    assert measured(metrics.Dice(), kit, predicted, actual, batches=2) == pytest.approx((2 / 3 + 1) / 2, abs=1e-5)


SQUARE = np.zeros((12, 12), np.int32)
SQUARE[2:7, 2:7] = 1
MOVED = np.zeros((12, 12), np.int32)
MOVED[4:10, 3:9] = 1


def _border(mask: Any) -> Any:
    rows, columns = np.nonzero(mask)
    inside = {(int(r), int(c)) for r, c in zip(rows, columns)}
    around = ((0, 1), (1, 0), (0, -1), (-1, 0))
    return np.array([p for p in inside if any((p[0] + dr, p[1] + dc) not in inside for dr, dc in around)], float)


def _nearest(start: Any, goal: Any) -> Any:
    return np.sqrt(((start[:, None] - goal[None]) ** 2).sum(axis=-1)).min(axis=1)


def surface(metric: Metric, kit: Kit) -> float:
    metric.clear()
    metric.update(kit.tensor(SQUARE), kit.tensor(MOVED), 1)
    return float(metric.eval())


def test_the_hausdorff_distance_is_scipys(kit: Kit) -> None:
    one, other = _border(SQUARE), _border(MOVED)
    directed = directed_hausdorff(one, other)[0]
    assert surface(metrics.HausdorffDistance(directed=True), kit) == pytest.approx(directed, abs=CLOSE)
    both = max(directed, directed_hausdorff(other, one)[0])
    assert surface(metrics.HausdorffDistance(), kit) == pytest.approx(both, abs=CLOSE)
    part = np.percentile(_nearest(one, other), 50)
    assert surface(metrics.HausdorffDistance(percentile=50.0, directed=True), kit) == pytest.approx(part, abs=CLOSE)


def test_surface_distances_are_means_over_the_borders(kit: Kit) -> None:
    one, other = _border(SQUARE), _border(MOVED)
    there, back = _nearest(one, other), _nearest(other, one)
    assert surface(metrics.MeanSurfaceDistance(), kit) == pytest.approx(there.mean(), abs=CLOSE)
    both = (there.mean() + back.mean()) / 2
    assert surface(metrics.MeanSurfaceDistance(symmetric=True), kit) == pytest.approx(both, abs=CLOSE)
    root = math.sqrt((there**2).mean())
    assert surface(metrics.RootMeanSquareDistance(), kit) == pytest.approx(root, abs=CLOSE)
    roots = math.sqrt(((there**2).mean() + (back**2).mean()) / 2)
    assert surface(metrics.RootMeanSquareDistance(symmetric=True), kit) == pytest.approx(roots, abs=CLOSE)


def test_taxicab_and_chessboard_measure_in_pixels(kit: Kit) -> None:
    one, other = _border(SQUARE), _border(MOVED)
    steps = np.abs(one[:, None] - other[None])
    taxicab = steps.sum(axis=-1).min(axis=1).mean()
    chessboard = steps.max(axis=-1).min(axis=1).mean()
    assert surface(metrics.MeanSurfaceDistance(distance_metric="taxicab"), kit) == pytest.approx(taxicab, abs=CLOSE)
    assert surface(metrics.MeanSurfaceDistance(distance_metric="chessboard"), kit) == pytest.approx(
        chessboard, abs=CLOSE
    )


def test_a_shape_only_one_side_has_is_infinitely_far(kit: Kit) -> None:
    metric = metrics.HausdorffDistance()
    metric.update(kit.tensor(SQUARE), kit.tensor(np.zeros_like(SQUARE)), 1)
    assert metric.eval() == math.inf


def test_occlusion_finds_the_pixel_a_model_looks_at(kit: Kit) -> None:
    weight = np.zeros((2, 9), np.float32)
    weight[1, 4] = 3.0
    network = kit.linear(weight, np.zeros(2, np.float32))
    metric = metrics.OcclusionSensitivity(margin=1, n_batch=4)
    metric.update(network, kit.tensor(np.ones((1, 9), np.float32)), kit.tensor(np.array([1])))
    # A margin of one hides the pixel before and the pixel itself: positions 4 and 5 hide the one that matters.
    assert metric.eval() == pytest.approx([0, 0, 0, 0, 3, 3, 0, 0, 0], abs=CLOSE)


def test_indexes_choose_among_many_outputs(kit: Kit) -> None:
    metric = metrics.Accuracy().set_indexes([2, 0])
    metric.update(kit.tensor(LABELS), kit.tensor(np.zeros(1)), kit.tensor(SCORES))
    assert metric.eval() == pytest.approx(sk.accuracy_score(LABELS, ANSWERS), abs=CLOSE)
    with pytest.raises(ValueError, match="list of whole numbers"):
        metrics.Accuracy().set_indexes("02")


def test_a_metric_of_ones_own_is_a_subclass(kit: Kit) -> None:
    class Worst(Metric):
        def __init__(self) -> None:
            super().__init__()
            self.clear()

        def clear(self) -> None:
            self.worst = 0.0

        @metrics.rearrange_inputs
        def update(self, *inputs: Any) -> None:
            from misstep.train.values import to_numpy

            self.worst = max(self.worst, float(np.abs(to_numpy(inputs[0]) - to_numpy(inputs[1])).max()))

        def eval(self) -> float:
            return self.worst

    assert measured(Worst(), kit, SCORES[:, 0], SCORES[:, 1]) == pytest.approx(
        float(np.abs(SCORES[:, 0] - SCORES[:, 1]).max()), abs=CLOSE
    )


def test_all_documented_names_make_a_metric() -> None:
    needed: dict[str, dict[str, Any]] = {"topk": {"k": 2}, "confusion_matrix": {"num_classes": 3}}
    made = {name: metrics.get_metric_fn(name, **needed.get(name, {})) for name in metrics.names()}
    assert sorted(made) == [
        "F1",
        "acc",
        "accuracy",
        "auc",
        "bleu_score",
        "confusion_matrix",
        "confusion_matrix_metric",
        "cosine_similarity",
        "dice",
        "hausdorff_distance",
        "loss",
        "mae",
        "mean_surface_distance",
        "mse",
        "occlusion_sensitivity",
        "perplexity",
        "precision",
        "recall",
        "roc",
        "root_mean_square_distance",
        "top_1_accuracy",
        "top_5_accuracy",
        "topk",
    ]
    assert all(isinstance(metric, Metric) for metric in made.values())
    with pytest.raises(TrainError, match="'topk' cannot be made from its name alone"):
        metrics.get_metrics({"topk"})


def test_every_metric_says_when_it_has_seen_nothing() -> None:
    needed: dict[str, dict[str, Any]] = {"topk": {"k": 2}, "confusion_matrix": {"num_classes": 3}}
    for name in metrics.names():
        with pytest.raises(TrainError, match="has seen no data"):
            metrics.get_metric_fn(name, **needed.get(name, {})).eval()


def test_wrong_inputs_are_named() -> None:
    with pytest.raises(ValueError, match="Accuracy needs 2 inputs"):
        metrics.Accuracy().update(SCORES)
    with pytest.raises(ValueError, match=r"scores of shape \(samples, classes, …\)"):
        metrics.Accuracy().update(LABELS, LABELS)
    with pytest.raises(ValueError, match="takes zeros and ones"):
        metrics.Accuracy("multilabel").update(SCORES, SCORES)
    with pytest.raises(ValueError, match="saw 6 classes in earlier batches and 5"):
        metric = metrics.Recall()
        metric.update(SCORES, LABELS)
        metric.update(SCORES[:, :5], np.minimum(LABELS, 4))
    with pytest.raises(ValueError, match="labels go from 0 to 5, but the prediction has 3 classes"):
        metrics.Precision().update(SCORES[:, :3], LABELS)


@pytest.mark.mindspore
@pytest.mark.parametrize(
    ("name", "options"),
    [("Accuracy", {}), ("Precision", {}), ("Recall", {}), ("F1", {}), ("TopKCategoricalAccuracy", {"k": 3})],
)
def test_classification_gives_mindspores_own_number(name: str, options: dict[str, Any]) -> None:
    import mindspore as ms

    ours, theirs = getattr(metrics, name)(**options), getattr(ms.train, name)(**options)
    for metric in (ours, theirs):
        metric.clear()
        metric.update(ms.Tensor(SCORES), ms.Tensor(LABELS))
    assert ours.eval() == pytest.approx(theirs.eval(), abs=CLOSE)
