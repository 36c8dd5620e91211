"""Every public function with every kind of input: what is wrong is refused by name; what is legal
gives a finite model."""

from functools import cache
from itertools import product

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf

from .conftest import ignore_convergence
from .kinds_of_input import (
    BAD_LABELS,
    BAD_NUMBERS,
    BAD_OPTIONS,
    BAD_OUTPUTS,
    BAD_SHAPE,
    BAD_X,
    BROKEN,
    CLASSES,
    COUNT,
    EXTREME_X,
    FEW_ROWS,
    FITS,
    LABELS,
    LEGAL_X,
    LEGAL_ZEROS,
    MISSING,
    NO_ROWS,
    OTHER_SET,
    SEEDS,
    SMALL,
    TARGETS,
    D,
    X,
    Y,
    broken,
    check_finite,
    leaks,
    parameters,
    refused,
)

matplotlib.use("Agg")
pytestmark = [ignore_convergence, pytest.mark.usefixtures("watchdog")]


OF_DRAWS = "sparse_rf", "sparse_rf exact", "sparse_rf_path"
WRONG_X = BAD_X | {kind: broken(kind) for kind in BROKEN}


def each(names, kinds):
    """Mark a test as one for each function and each kind of input."""
    of_name = pytest.mark.parametrize("name", list(names))
    return lambda test: of_name(pytest.mark.parametrize("kind", list(kinds))(test))


def value(kind):
    """Return an input, which may have to be made anew by a function."""
    return kind() if callable(kind) else kind


def check_finite_or_refused(name, X, y, **options):
    """Check that a fit gives a finite model, or an error that says what is wrong with X or y."""
    try:
        check_finite(FITS[name](X, y, **options), X)
    except ValueError as error:
        assert str(error).startswith(("X must", "y must", "y has"))  # noqa: PT017


# X


def calls(function, bad, *given, **options):
    """Return a call for each kind of bad X, y or indices, which takes the place of None among the
    arguments."""
    return {
        kind: lambda value=value: function(
            *(value if each is None else each for each in given), **options
        )
        for kind, value in bad.items()
    }


@pytest.mark.every_case
@pytest.mark.parametrize("name", FITS)
def test_x_that_is_wrong(name):
    assert not leaks("X", calls(FITS[name], WRONG_X | NO_ROWS, None, Y))
    assert not leaks("X", calls(FITS[name], MISSING, None, Y, missing="raise"))


@each(FITS, MISSING)
def test_what_is_missing(name, kind):
    check_finite(FITS[name](MISSING[kind], Y), MISSING[kind])


PLAIN = {}


def plain_answer(name, X):
    """Return the decision function of the fit to X, kept: most kinds of X have the numbers of one
    array."""
    key = name, id(X)
    if key not in PLAIN:
        PLAIN[key] = FITS[name](X, Y).decision_function(X)
    return PLAIN[key]


def snapshot(array):
    """Return the numbers of an array, and the bits that they are stored in."""
    if not sp.issparse(array):
        array = np.asarray(array)
        return array.tolist() if array.dtype == object else array.tobytes()
    parts = [
        getattr(array, name) for name in ("data", "indices", "indptr") if array.format == "csr"
    ]
    return [part.tobytes() for part in (array.toarray(), *parts)]


# Sums of duplicates may end in other digits.
OF_OTHER_ORDER = "duplicates", "zeros", "int64 indices", "read-only unsorted"


@each(FITS, LEGAL_X)
def test_x_that_is_odd_but_legal(name, kind):
    """The fit is that of the same numbers in a plain array, to the bit where sparse_rf draws
    features; X stays as it was."""
    odd, plain = LEGAL_X[kind]
    odd = value(odd)
    before = snapshot(odd)
    model = FITS[name](odd, Y)
    check_finite(model, plain)
    same, answer = plain_answer(name, plain), model.decision_function(odd)
    np.testing.assert_allclose(answer, same, rtol=1e-6, atol=1e-6 * np.abs(same).max())
    assert np.array_equal(answer, same) or name not in OF_DRAWS or kind in OF_OTHER_ORDER
    assert snapshot(odd) == before


@pytest.mark.filterwarnings("ignore:X holds integers beyond")
@pytest.mark.filterwarnings("ignore:.*columns of very different spread")
@pytest.mark.parametrize("kind", EXTREME_X)
@pytest.mark.parametrize(("name", "loss"), [*product(FITS, ("squared", "logistic"))])
def test_x_that_is_hard(name, loss, kind):
    """A fit gives a finite model, or an error that says what is wrong with X."""
    check_finite_or_refused(name, EXTREME_X[kind], Y if loss == "squared" else LABELS, loss=loss)


@each(FITS, FEW_ROWS)
def test_few_rows(name, kind):
    rows, n = FEW_ROWS[kind]
    check_finite_or_refused(name, rows, Y[:n])


# Targets and labels


@pytest.mark.every_case
@pytest.mark.parametrize("name", FITS)
def test_target_that_is_wrong(name):
    assert not leaks("y", calls(FITS[name], BAD_SHAPE | BAD_NUMBERS | BAD_OUTPUTS, X, None))


@pytest.mark.every_case
@pytest.mark.parametrize("name", FITS)
def test_labels_that_are_wrong(name):
    assert not leaks("y", calls(FITS[name], BAD_SHAPE | BAD_LABELS, X, None, loss="squared_hinge"))


@each(FITS, TARGETS)
@pytest.mark.filterwarnings("ignore:y is .* alone")
def test_target_that_is_hard_but_legal(name, kind):
    y = value(TARGETS[kind])
    check_finite_or_refused(name, X, y)


@each(FITS, CLASSES)
def test_labels_of_any_kind(name, kind):
    y = value(CLASSES[kind])
    model = FITS[name](X, y, loss="squared_hinge")
    check_finite(model, X)
    np.testing.assert_array_equal(model.classes, np.unique(np.asarray(y)))


def test_target_given_to_a_classifier():
    x = np.linspace(0, 1, 101)[:, None]
    for name in FITS:
        refused("y", FITS[name], x, x.ravel(), loss="squared_hinge")


# Options


@pytest.mark.every_case
@pytest.mark.parametrize("name", FITS)
def test_options_that_are_wrong(name):
    for option in [each for each in BAD_OPTIONS if each in parameters(name)]:
        allowed = (int, float) if (name, option) in LEGAL_ZEROS else ()
        bad = [value for value in BAD_OPTIONS[option] if type(value) not in allowed or value != 0]
        fit = lambda value, option=option: FITS[name](X, Y, **{option: value})  # noqa: E731
        assert not leaks(
            option, calls(fit, {f"{i}: {value!r:.30}": value for i, value in enumerate(bad)}, None)
        )


# What is asked of a model


@cache
def asked(missing="learn"):
    """Return questions to models, by name."""
    logistic = FITS["sparse_rf"](X, LABELS, loss="logistic", missing=missing)
    products, drawn = FITS["mfga"](X, Y, missing=missing), additive(missing)
    return {
        "predict": logistic.predict,
        "decision_function": logistic.decision_function,
        "predict_proba": logistic.predict_proba,
        "predict by products": products.predict,
        "transform": logistic.features.transform,
        "prune": lambda X: srf.prune(products, X),
        "refit": lambda X: srf.refit(products, X, Y),
        "effects": lambda X: srf.plot.effects(drawn, X),
    }


QUESTIONS = [
    "predict",
    "decision_function",
    "predict_proba",
    "predict by products",
    "transform",
    "prune",
    "refit",
    "effects",
]
COLUMNS = {
    f"{kind.__name__} of {d} columns": kind(np.ones((5, d)))
    for kind in (np.array, sp.csr_array)
    for d in (1, 2, 4)
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", QUESTIONS)
def test_question_about_x_that_is_wrong(name):
    assert not leaks("X", calls(asked()[name], WRONG_X | COLUMNS, None))
    assert not leaks("X", calls(asked("raise")[name], MISSING, None))


@each(QUESTIONS, MISSING)
def test_question_about_what_is_missing(name, kind):
    answer = asked()[name](MISSING[kind])
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        assert np.isfinite(answer).all()
    plt.close("all")


@each(QUESTIONS[:-3], LEGAL_X)
def test_question_about_x_that_is_odd_but_legal(name, kind):
    odd, plain = LEGAL_X[kind]
    answer, same = asked()[name](value(odd)), asked()[name](plain)
    assert answer.dtype == same.dtype
    if answer.dtype.kind == "f":
        np.testing.assert_allclose(answer, same, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(answer, same)


@pytest.mark.filterwarnings("ignore:X holds integers beyond")
@each(QUESTIONS, EXTREME_X)
def test_question_about_x_that_is_hard(name, kind):
    try:
        answer = asked()[name](EXTREME_X[kind])
    except ValueError as error:
        assert str(error).startswith("X must")  # noqa: PT017
    else:
        if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
            assert not np.isnan(answer).any()
    plt.close("all")


# Maps, sets and pictures


MAPS = {
    "Fourier": srf.Fourier(gamma=1.0),
    "Perceptron": srf.Perceptron(radius=1.0),
    "RandomNeurons": srf.RandomNeurons(order=2),
    "Taylor": srf.Taylor(gamma=1.0),
    "Linear": srf.Linear(),
    "Bumps": srf.Bumps(np.zeros((4, D)), 1.0),
}
BAD_DRAWS = {"n_components": COUNT[1:], "n_features": COUNT, "rng": SEEDS}


@pytest.mark.every_case
@pytest.mark.parametrize("option", BAD_DRAWS)
@pytest.mark.parametrize("name", MAPS)
def test_draw_with_what_is_wrong(name, option):
    given = {"n_components": 5, "n_features": D, "rng": 0}
    # others are ignored
    for bad in BAD_DRAWS[option] if option == "n_features" or not MAPS[name].is_finite else ():
        refused(option, MAPS[name].draw, **given | {option: bad})


@pytest.mark.every_case
@pytest.mark.parametrize(
    "features", ["perceptron", srf.Linear(), (srf.Fourier(), srf.Linear()), OTHER_SET]
)
def test_gamma_only_beside_a_kernel(features):
    refused("gamma", FITS["sparse_rf"], X, Y, features=features, gamma=1.0)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("kernel", lambda: srf.Fourier("rbf")),
        ("kernel", lambda: srf.Fourier(None)),
        ("gamma", lambda: srf.Fourier(gamma=True)),
        ("gamma", lambda: srf.Fourier(gamma=0)),
        ("gamma", lambda: srf.Fourier().draw(5, 2)),
        ("activation", lambda: srf.RandomNeurons("elu")),
        ("order", lambda: srf.RandomNeurons(order=0)),
        ("order", lambda: srf.RandomNeurons(order=True)),
        ("order", lambda: FITS["sparse_rf"](X, Y, features=srf.RandomNeurons(order=D + 1))),
        ("weights", lambda: srf.RandomNeurons(weights="beta")),
        ("scale", lambda: srf.RandomNeurons(scale=np.inf)),
        ("degree", lambda: srf.Taylor(0)),
        ("degree", lambda: srf.Taylor("2")),
        ("degree", lambda: FITS["sparse_rf"](X, Y, features=srf.Taylor(10**9))),
        ("gamma", lambda: srf.Taylor(gamma=0)),
        ("gamma", lambda: srf.Taylor(gamma=True)),
        ("gamma", lambda: srf.Taylor().draw(None, 2)),
        ("gamma", lambda: FITS["sparse_rf"](X, Y, features=srf.Taylor(), gamma=1.0)),
        ("centers", lambda: srf.Bumps(0)),
        ("centers", lambda: srf.Bumps(True)),
        ("centers", lambda: srf.Bumps(None)),
        ("centers", lambda: srf.Bumps("abc")),
        ("centers", lambda: srf.Bumps(np.zeros(D))),
        ("centers", lambda: srf.Bumps(np.zeros((0, D)))),
        ("centers", lambda: srf.Bumps([[np.inf] * D])),
        ("centers", lambda: srf.Bumps(5, 1.0).draw(None, D)),
        ("centers", lambda: FITS["sparse_rf"](X, Y, features=srf.Bumps(np.zeros((4, D + 1))))),
        ("gamma", lambda: srf.Bumps(gamma=0)),
        ("gamma", lambda: srf.Bumps(np.zeros((4, D))).draw(None, D)),
        ("include_squares", lambda: srf.Taylor(include_squares=None)),
        ("radius", lambda: srf.Perceptron(radius=-1.0)),
        ("radius", lambda: srf.Perceptron().draw(5, 2)),
        (
            "center",
            lambda: FITS["sparse_rf"](
                X, Y, features=srf.Perceptron(radius=1.0, center=np.zeros(D + 1))
            ),
        ),
        (
            "center",
            lambda: FITS["sparse_rf"](X, Y, features=srf.Perceptron(center=np.zeros(D + 1))),
        ),
        (
            "center",
            lambda: FITS["sparse_rf"](
                X, Y, features=srf.Perceptron(radius=1.0, center=[np.nan] * D)
            ),
        ),
        ("center", lambda: FITS["sparse_rf"](X, Y, features=srf.Perceptron(center="abc"))),
        ("other", lambda: OTHER_SET.concat(None)),
        ("inputs", lambda: OTHER_SET.concat(srf.Linear().draw(None, D))),
    ],
)
def test_bad_map(name, make):
    refused(name, make)


SET = srf.Fourier(gamma=1.0).draw(10, D, rng=0)
BAD_INDICES = [
    [10],
    [-1],
    [0.5],
    [True],
    [[0]],
    "a",
    ["a"],
    0,
    1.0,
    [None],
    [1, None],
    {1},
    [10**30],
    [1j],
    [[0], [1, 2]],
    np.array(["1"]),
    np.array([0], "M8[s]"),
    np.ma.array([0, 1], mask=[0, 1]),
]


@pytest.mark.every_case
@pytest.mark.parametrize("bad", BAD_INDICES, ids=repr)
def test_take_with_wrong_indices(bad):
    refused("indices", SET.take, bad)


def additive(missing="learn"):
    """Return a model of terms of two inputs."""
    return srf.harfe(X, Y, order=2, n_nonzero_coefs=4, alpha=1e-4, missing=missing, **SMALL)


@pytest.mark.every_case
@pytest.mark.parametrize("bad", [["a"], "abc", [], 3], ids=repr)
def test_wrong_names(bad):
    refused("inputs", SET.names, bad)
    refused("names", srf.plot.effects, additive(), X, names=bad)
    refused("names", srf.plot.input_usage, additive(), names=bad)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "bad",
    ["a", None, X, srf.Linear()],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_no_model(bad):
    refused("model", srf.plot.effects, bad, X)
    refused("model", srf.plot.input_usage, bad)
    refused("model", srf.prune, bad, X)
    refused("model", srf.refit, bad, X, Y)


@pytest.mark.parametrize("option", ["n_panels", "n_points"])
def test_picture_of_a_wrong_size(option):
    for bad in [*COUNT, None] + ([1] if option == "n_points" else []):
        refused(option, srf.plot.effects, additive(), X, **{option: bad})
