"""distill: what it tells of the model is true of rows that the model has not seen, and it asks the
teacher as it says."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax

import sparserf as srf
from sparserf import distill

FEW = {"n_made": 200, "effort": 0.02, "rng": 0}  # enough for these teachers, in a second
X = np.random.default_rng(0).uniform(-2, 2, (150, 3))


def waves(X):
    """Return a sum of cosines."""
    return np.cos(2 * X[:, 0]) + 2 * np.cos(X[:, 1] - X[:, 2] + 1)


def chances(X):
    """Return the probabilities of three classes."""
    return softmax(np.column_stack([X[:, 0], X[:, 1] ** 2, 2 * np.sin(X[:, 0])]), axis=1)


class Asked:
    """A teacher that remembers the rows that it was asked for."""

    def __init__(self, teacher):
        self.teacher, self.rows = teacher, []

    def __call__(self, X):
        self.rows.append(X)
        return self.teacher(X)


@pytest.mark.slow
def test_a_sum_of_cosines_is_recovered():
    model = distill(waves, X, n_made=1000, max_terms=40, effort=0.1, rng=0)
    new = np.random.default_rng(1).uniform(-2, 2, (2000, 3))
    assert len(model.features) <= 40
    assert np.mean((model.predict(new) - waves(new)) ** 2) < 1e-3 * waves(new).var()
    assert model.info.fidelity > 0.999


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_fidelity_is_that_of_the_rows_kept_apart(weighted):
    teacher, weight = (
        Asked(waves),
        np.random.default_rng(0).integers(0, 4, len(X)) if weighted else None,
    )
    model = distill(teacher, X, sample_weight=weight, test_size=0.2, **FEW)
    kept, rest = teacher.rows[0], np.concatenate(teacher.rows[1:])
    index = np.flatnonzero((X[:, None] == kept).all(axis=2).any(axis=1))
    s = np.ones(len(kept)) if weight is None else weight[index]
    assert (
        len(index)
        == len(kept)
        == round(0.2 * (len(X) if weight is None else np.count_nonzero(weight)))
    )
    assert s.min() > 0
    assert not np.isin(kept, rest).any()  # no cell of theirs was fitted to
    t, f = waves(kept), model.predict(kept)
    mean = np.average(t, weights=s)
    assert model.info.fidelity == pytest.approx(
        1 - (s @ (f - t) ** 2) / (s @ (t - mean) ** 2), rel=1e-12
    )


def kept_and_rest(frames):
    """Return (the rows kept apart, the others that the teacher was asked for), each as a set of
    tuples of what cells say."""
    # no zero of a sign
    plain = [rows + 0.0 if isinstance(rows, np.ndarray) else np.asarray(rows) for rows in frames]
    said = [{tuple(map(str, row)) for row in rows} for rows in plain]
    return said[0], set().union(*said[1:])


WORDS = np.random.default_rng(1).choice(["u", "v", None], (40, 2))
COPIED = {  # rows, each of which is there several times
    "array": np.repeat(X[:40], 4, axis=0),
    "float32": np.repeat(X[:40], 4, axis=0).astype(np.float32),
    "zeros of both signs": np.concatenate([X[:40] * [sign * 0.0, 1, 1] for sign in (1, -1, 1, -1)]),
    "missing": np.tile(np.where(X[:40] > 1, np.nan, X[:40]), (4, 1)),
    "few levels": np.random.default_rng(2).integers(0, 3, (200, 3)).astype(float),
    "pandas": pd.DataFrame({"a": X[:40, 0], "b": WORDS[:, 0], "c": WORDS[:, 1]}).sample(
        200, replace=True, random_state=0
    ),
    "polars": pl.DataFrame({"a": np.tile(X[:40, 0], 4), "b": np.tile(WORDS[:, 0], 4)}),
}


@pytest.mark.parametrize("rows", COPIED.values(), ids=COPIED)
def test_no_row_is_kept_apart_of_which_a_copy_is_fitted_or_made(rows):
    teacher = Asked(lambda X: np.arange(len(X)) % 7.0)
    distill(teacher, rows, **FEW | {"n_made": 500})
    kept, rest = kept_and_rest(teacher.rows)
    assert kept and rest and not kept & rest
    assert 0.05 < len(teacher.rows[0]) / len(rows) < 0.2


def test_fidelity_where_each_row_is_there_several_times():
    """The teacher is noise, of which new rows say nothing."""
    rows = np.repeat(X[:60], 8, axis=0)
    model = distill(
        lambda X: np.sin(1e4 * X).sum(axis=1), rows, **FEW | {"n_made": 0, "effort": 0.1}
    )
    assert model.info.fidelity < 0.5


@pytest.mark.parametrize("label", [int, str, lambda k: (k, "a")], ids=["int", "str", "tuple"])
def test_groups_are_kept_apart_whole(label):
    group = np.arange(len(X)) // 10
    labels = np.empty(len(X), object)
    labels[:] = [label(k) for k in group.tolist()]
    teacher = Asked(waves)
    distill(teacher, X, groups=labels if label is not int else group, **FEW)
    is_kept = (X[:, None] == teacher.rows[0]).all(axis=2).any(axis=1)
    assert set(np.bincount(group[is_kept])) <= {0, 10} and 0 < is_kept.sum() < 40
    # nothing was made of them
    assert not np.isin(X[is_kept], np.concatenate(teacher.rows[1:])).any()


@pytest.mark.slow
def test_copies_stay_together_where_groups_part_them():
    rows, teacher = np.tile(X[:50], (3, 1)), Asked(waves)
    distill(teacher, rows, groups=np.arange(150) // 5, **FEW)
    kept, rest = kept_and_rest(teacher.rows)
    assert kept and rest and not kept & rest


@pytest.mark.slow
def test_fidelity_of_several_values_and_of_probabilities():
    for teacher, more in ((lambda X: X[:, :2] ** 2, {}), (chances, {"classes": range(3)})):
        asked = Asked(teacher)
        model = distill(asked, X, **more, **FEW)
        t = teacher(asked.rows[0])
        f = (model.predict_proba if more else model.predict)(asked.rows[0])
        assert f.shape == t.shape
        assert model.info.fidelity == pytest.approx(
            1 - ((f - t) ** 2).sum() / ((t - t.mean(axis=0)) ** 2).sum(), rel=1e-12
        )


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_fidelity_of_values_whose_squares_overflow_or_vanish(size):
    model = distill(lambda X: size * waves(X), X, **FEW)
    assert model.info.fidelity == pytest.approx(distill(waves, X, **FEW).info.fidelity, rel=1e-2)


@pytest.mark.slow
def test_two_classes():
    p = lambda X: 1 / (1 + np.exp(-2 * waves(X)))  # noqa: E731
    of_second = distill(p, X, classes=["no", "yes"], **FEW)
    of_both = distill(lambda X: np.column_stack([1 - p(X), p(X)]), X, classes=[0, 1], **FEW)
    assert of_second.classes.tolist() == ["no", "yes"]
    assert of_both.classes.tolist() == [0, 1]
    np.testing.assert_array_equal(of_second.predict_proba(X), of_both.predict_proba(X))
    assert of_second.info.fidelity > 0.9
    assert np.mean((of_second.predict(X) == "yes") == (p(X) > 0.5)) > 0.9


@pytest.mark.slow
def test_probabilities_of_three_classes_in_the_order_of_the_labels():
    model = distill(chances, X, classes=["a", "b", "c"], **FEW)
    assert model.classes.tolist() == ["a", "b", "c"]
    assert np.abs(model.predict_proba(X) - chances(X)).mean() < 0.1
    assert model.info.fidelity > 0.9


def test_few_terms_and_inputs():
    model = distill(waves, X, max_terms=5, max_order=1, **FEW)
    assert 0 < len(model.features) <= 5
    functions = [name for name in model.features.names() if not name.startswith("identity")]
    assert functions and all("," not in name for name in functions)


@pytest.mark.slow
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_reach_the_teacher_as_they_are(frame):
    words = np.random.default_rng(0).choice(["u", "v"], len(X))
    F = frame({"a": X[:, 0], "b": np.where(X[:, 1] > 1.5, None, X[:, 1]).astype(float), "c": words})

    def teacher(F):
        assert type(F) is frame
        assert list(F.columns) == ["a", "b", "c"]
        b = F["b"].to_numpy()
        return F["a"].to_numpy() + np.where(np.isnan(b), 1.0, b) * (F["c"].to_numpy() == "u")

    model = distill(teacher, F, **FEW)
    assert model.info.fidelity > 0.9
    assert model.predict(F).shape == (len(X),)


@pytest.mark.slow
def test_the_teacher_is_asked_for_some_rows_at_once():
    teacher = Asked(waves)
    distill(teacher, X, **FEW | {"n_made": 10_000})
    assert [len(rows) for rows in teacher.rows] == [15, 10_000, 135]


@pytest.mark.slow
def test_no_made_rows():
    teacher = Asked(waves)
    distill(teacher, X, **FEW | {"n_made": 0})
    rows = np.concatenate(teacher.rows)
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(X, axis=0))


@pytest.mark.slow
def test_same_seed_same_model():
    one, two, other = (
        distill(waves, X, workers=workers, **FEW | {"rng": rng})
        for workers, rng in ((1, 3), (2, 3), (1, 4))
    )
    np.testing.assert_array_equal(one.coef, two.coef)
    assert one.info == two.info
    assert one.info != other.info


@pytest.mark.slow
def test_fidelity_is_saved(tmp_path):
    model = distill(waves, X, **FEW)
    model.save(tmp_path / "model.npz")
    assert srf.load(tmp_path / "model.npz").info == model.info
    assert srf.prune(model, X, max_terms=1).info.fidelity is None


class Other:
    def predict(self, X):
        return waves(X)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("teacher", "more", "error", "words"),
    [
        (Other(), {}, TypeError, "teacher must be a function .* such as Other.predict"),
        (None, {}, TypeError, "teacher must be a function"),
        (
            lambda X: 0.0,
            {},
            ValueError,
            r"teacher must return a value for each row, or a line, got shape \(\)",
        ),
        (lambda X: X[1:, 0], {}, ValueError, r"got shape \(14,\) for 15"),
        (lambda X: X[:, :, None], {}, ValueError, "teacher must return a value for each row"),
        (lambda X: X[:, :0], {}, ValueError, "teacher must return a value for each row"),
        (lambda X: ["a"] * len(X), {}, TypeError, "teacher must return .* must hold real numbers"),
        (
            lambda X: np.where(X[:, 0] == X[7, 0], np.nan, 0),
            {"n_made": 0},
            ValueError,
            "got nan for row .* of X",
        ),
        (
            lambda X: 2 * np.ones(len(X)),
            {"classes": [0, 1]},
            ValueError,
            "teacher must return probabilities .* got 2.0 for",
        ),
        (
            lambda X: chances(X) / 2,
            {"classes": "abc"},
            ValueError,
            "classes must be one column of labels|classes",
        ),
        (lambda X: chances(X) / 2, {"classes": [1, 2, 3]}, ValueError, "probabilities of sum 1"),
        (
            chances,
            {"classes": [0, 1]},
            ValueError,
            "teacher must return the probabilities of 2 classes, got those of 3",
        ),
        (chances, {"classes": [2, 1, 0]}, ValueError, "classes must be labels in ascending order"),
        (
            waves,
            {"classes": [0, 1], "loss": "huber"},
            ValueError,
            "loss must be 'squared' for probabilities",
        ),
        (waves, {"loss": "logistic"}, ValueError, "loss must be one of"),
        (waves, {"n_made": -1}, ValueError, "n_made must be at least 0, got -1"),
        (waves, {"max_terms": 0}, ValueError, "max_terms must be at least 1, got 0"),
        (waves, {"test_size": 1.0}, ValueError, "test_size must be below 1"),
        (waves, {"test_size": 0}, ValueError, "test_size must be finite and > 0"),
        (
            waves,
            {"groups": np.zeros(150)},
            ValueError,
            "X must have different rows, or rows of different groups, .* got 150",
        ),
        (
            waves,
            {"groups": np.zeros(149)},
            ValueError,
            "groups must have an entry for each of the 150 rows of X",
        ),
        (
            waves,
            {"sample_weight": np.eye(150)[0]},
            ValueError,
            "X must have at least 3 rows of positive weight, got 1",
        ),
    ],
)
def test_errors_name_what_is_wrong(teacher, more, error, words):
    with pytest.raises(error, match=words):
        distill(teacher, X, **FEW | more)


@pytest.mark.parametrize("rows", [csr_array(X), iter(X), None])
def test_rows_that_are_no_table(rows):
    with pytest.raises(TypeError, match="X must be a data frame or a dense array in memory, got"):
        distill(waves, rows, **FEW)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "wrong",
    [
        {"max_order": 0},
        {"effort": 0},
        {"time_limit": -1},
        {"workers": 0},
        {"callback": 1},
        {"rng": "a"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_arguments_are_checked_before_the_teacher_is_asked(wrong):
    teacher = Asked(waves)
    with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
        distill(teacher, X, **FEW | wrong)
    assert teacher.rows == []


def test_a_row_for_which_the_teacher_fails_is_named():
    bad = 77
    with pytest.raises(ValueError, match=f"got nan for row {bad} of X"):
        distill(lambda Z: np.where((Z == X[bad]).all(axis=1), np.nan, Z[:, 0]), X, **FEW)
