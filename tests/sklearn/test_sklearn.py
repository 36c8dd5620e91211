"""The estimators of scikit-learn pass its own checks, and do what its users ask of estimators."""

import copy
import inspect
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf

sklearn = pytest.importorskip("sklearn", "1.5")

from sklearn.base import clone, is_classifier, is_regressor  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.inspection import partial_dependence, permutation_importance  # noqa: E402
from sklearn.metrics import make_scorer, mean_pinball_loss, r2_score  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    GridSearchCV,
    GroupKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OrdinalEncoder, StandardScaler  # noqa: E402
from sklearn.utils.class_weight import compute_sample_weight  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402
from sklearn.utils.validation import check_is_fitted  # noqa: E402

from sparserf import sklearn as srfs  # noqa: E402

FUNCTIONS = {"SparseRF": srf.sparse_rf, "HARFE": srf.harfe, "MFGA": srf.mfga, "DRP": srf.drp}
IS_OLD = sklearn.__version__ < "1.6"
OF_WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
EXPECTED = {  # checks that the method itself cannot pass, with the reason
    function: dict.fromkeys(OF_WEIGHTS, f"{what}=None holds out each of the copies on its own")
    for function, what in (
        (srf.sparse_rf, "alpha"),
        (srf.harfe, "n_nonzero_coefs"),
        (srf.mfga, "n_nonzero_coefs"),
        (srf.drp, "alpha"),
    )
}
PAPER = {
    "alpha": 0.01,
    "features": "gaussian",
    "gamma": 1.0,
    "scale": None,
    "n_components": 300,
    "tol": 1e-10,
}
WHOLE = [
    srfs.SparseRFRegressor(**PAPER),
    srfs.SparseRFClassifier(**PAPER),
    srfs.MFGARegressor(features=srf.Taylor(2), n_nonzero_coefs=3, alpha=1e-3),
    srfs.MFGAClassifier(features=srf.Taylor(2), n_nonzero_coefs=3, alpha=1e-3),
    srfs.DRPRegressor(alpha=1e-3),
    srfs.DRPClassifier(alpha=1e-3),
]
ALL_BUT_SOME = [
    srfs.HARFERegressor(alpha=1e-3),
    srfs.HARFEClassifier(alpha=1e-3),
    srfs.DRPRegressor(),
    srfs.DRPClassifier(),
]
RULES = [
    srfs.SparseRFRegressor(features=srf.Rules(), alpha=0.01),
    srfs.SparseRFClassifier(features=srf.Rules(), alpha=0.01),
]
SLOW = [
    srfs.SparseRFRegressor(),
    srfs.SparseRFClassifier(),
    srfs.HARFERegressor(),
    srfs.HARFEClassifier(),
    srfs.MFGARegressor(),
    srfs.MFGAClassifier(),
]
QUIET = pytest.mark.filterwarnings("ignore")  # checks fit to noise and to two rows, which warns


def function_of(estimator):
    """Return the function that an estimator fits by."""
    return FUNCTIONS[type(estimator).__name__.removesuffix("Regressor").removesuffix("Classifier")]


def checks(estimators, expected=None):
    """Return a mark with one test for each of scikit-learn's checks of each estimator; each passes
    or fails as expected."""
    if IS_OLD:
        return parametrize_with_checks(estimators)
    return parametrize_with_checks(estimators, expected_failed_checks=expected, xfail_strict=True)


@checks(WHOLE)
@QUIET
def test_all_checks_pass(estimator, check):
    check(estimator)


@checks(ALL_BUT_SOME, lambda estimator: EXPECTED[function_of(estimator)])
@QUIET
def test_all_checks_pass_but_expected_ones(estimator, check):
    check(estimator)


@checks(
    RULES,
    lambda _: dict.fromkeys(OF_WEIGHTS, "a tree draws some of the rows, each copy on its own"),
)
@pytest.mark.slow
@QUIET
def test_all_checks_pass_with_rules(estimator, check):
    check(estimator)


@checks(SLOW, lambda estimator: EXPECTED[function_of(estimator)])
@pytest.mark.nightly
@QUIET
def test_all_checks_pass_of_estimators_as_they_come(estimator, check):
    check(estimator)


# The data

RNG = np.random.default_rng(0)
N = 300
X = RNG.uniform(-2, 2, (N, 4))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2] + 0.05 * RNG.standard_normal(N)
LABELS = np.where(Y > 0.5, "high", np.where(Y > -0.5, "middle", "low"))
KERNEL = {
    "features": "gaussian",
    "gamma": 0.3,
    "alpha": 1e-3,
    "n_components": 400,
    "random_state": 0,
}
REGRESSORS = {
    "SparseRF": srfs.SparseRFRegressor(**KERNEL),
    "HARFE": srfs.HARFERegressor(
        activation="sin", n_components=500, n_nonzero_coefs=40, alpha=1e-4, random_state=0
    ),
    "MFGA": srfs.MFGARegressor(n_nonzero_coefs=20, alpha=1e-3, random_state=0),
    "DRP": srfs.DRPRegressor(random_state=0),
}
CLASSIFIERS = {
    "SparseRF": srfs.SparseRFClassifier(**KERNEL),
    "HARFE": srfs.HARFEClassifier(n_components=500, n_nonzero_coefs=20, alpha=1e-4, random_state=0),
    "MFGA": srfs.MFGAClassifier(n_nonzero_coefs=10, alpha=1e-3, random_state=0),
    "DRP": srfs.DRPClassifier(random_state=0),
}
EVERY = [*REGRESSORS.values(), *CLASSIFIERS.values()]


def target_of(estimator):
    """Return labels for a classifier, real targets for a regressor."""
    return LABELS if is_classifier(estimator) else Y


# Thin: the function's


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_fit_is_the_function(estimator):
    names, given = {"random_state": "rng", "n_jobs": "workers"}, estimator.get_params()
    fitted, y, weight = clone(estimator), target_of(estimator), 1.0 + np.arange(N) % 3
    given = {names.get(name, name): value for name, value in given.items()} | {"workers": 1}
    model = function_of(estimator)(X, y, sample_weight=weight, **given)
    assert fitted.fit(X, y, sample_weight=weight) is fitted
    assert fitted.model_.coef.tobytes() == model.coef.tobytes()
    assert np.array_equal(fitted.predict(X), model.predict(X))
    assert fitted.n_features_in_ == 4 and not hasattr(fitted, "feature_names_in_")
    if is_classifier(estimator):
        assert fitted.classes_.tolist() == ["high", "low", "middle"]
        assert np.array_equal(fitted.decision_function(X), model.decision_function(X))
        assert np.array_equal(fitted.predict_proba(X), model.predict_proba(X))
        np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.every_case
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_those_of_the_function(name):
    function = inspect.signature(FUNCTIONS[name]).parameters
    for Kind in (type(REGRESSORS[name]), type(CLASSIFIERS[name])):
        own = inspect.signature(Kind).parameters
        left_out = "X", "y", "sample_weight", "offset", "groups", "rng", "workers"
        expected = {name for name in function if name not in left_out}
        expected |= {"random_state", "n_jobs"}
        expected -= {"lower", "upper"} if Kind is type(CLASSIFIERS[name]) else {"class_weight"}
        assert set(own) == expected
        for parameter in own.values():
            assert parameter.kind is parameter.KEYWORD_ONLY
            theirs = function.get(parameter.name)
            if (
                theirs is not None
                and theirs.default is not theirs.empty
                and parameter.name != "loss"
            ):
                assert parameter.default == theirs.default
        documented = Kind.__doc__.split("Parameters\n", 1)[1].split("Attributes\n", 1)[0]
        entries = [line.split(":")[0] for line in documented.split("\n") if line[4:5].strip()]
        told = {name.strip() for entry in entries for name in entry.split(",")}
        assert set(own) <= told, set(own) - told
        for given, meant in (
            ("no_such", ""),
            ("rng", "; here it is 'random_state'"),
            ("missin", "; did you mean 'missing'?"),
        ):
            message = f"{Kind.__name__} got an unexpected keyword argument {given!r}{meant}"
            with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
                Kind(**{given: 1})
        with pytest.raises(TypeError, match=rf"^{Kind.__name__}.__init__\(\) takes 1 positional"):
            Kind(1)


@pytest.mark.parametrize("estimator", CLASSIFIERS.values(), ids=CLASSIFIERS)
@pytest.mark.parametrize("class_weight", ["balanced", {"high": 3.0}], ids=["balanced", "mapping"])
def test_class_weights_are_sample_weights(estimator, class_weight):
    weight = compute_sample_weight(class_weight, LABELS)
    one = clone(estimator).set_params(class_weight=class_weight).fit(X, LABELS)
    other = clone(estimator).fit(X, LABELS, sample_weight=weight)
    assert one.model_.coef.tobytes() == other.model_.coef.tobytes()
    with pytest.raises(TypeError, match="unexpected keyword argument 'class_weight'"):
        REGRESSORS["MFGA"].__class__(class_weight=class_weight)


# Losses

RATES = np.random.default_rng(5).poisson(np.exp(1 + 0.5 * X[:, 0]))
OF_REAL = [
    "huber",
    "quantile",
    "poisson",
    "tweedie",
    "gamma",
    srf.losses.Quantile(0.9),
    srf.losses.Huber(0.5),
]


@pytest.mark.parametrize("loss", OF_REAL, ids=str)
@pytest.mark.parametrize("estimator", REGRESSORS.values(), ids=REGRESSORS)
def test_regressors_of_all_losses(estimator, loss):
    """An estimator predicts what the function does; for losses with a link that is the mean."""
    y, given = (
        RATES + (loss == "gamma"),
        {"random_state": 0, **estimator.get_params(), "loss": loss},
    )
    fitted = clone(estimator).set_params(loss=loss).fit(X, y)
    given = {
        {"random_state": "rng", "n_jobs": "workers"}.get(name, name): value
        for name, value in given.items()
    }
    model = function_of(estimator)(X, y, **given | {"workers": 1})
    assert np.array_equal(fitted.predict(X), model.predict(X)) and fitted.model_.loss == getattr(
        loss, "name", loss
    )
    assert fitted.score(X, y) == r2_score(y, model.predict(X))
    if loss in ("poisson", "tweedie", "gamma"):
        assert fitted.predict(X).min() > 0 and abs(fitted.predict(X).mean() / y.mean() - 1) < 0.1


@pytest.mark.slow
def test_a_search_over_losses_and_their_parameters():
    scorer = make_scorer(mean_pinball_loss, greater_is_better=False, alpha=0.9)
    model = srfs.MFGARegressor(
        n_nonzero_coefs=4, alpha=1e-3, random_state=0, loss=srf.losses.Quantile(0.5)
    )
    search = GridSearchCV(model, {"loss__level": [0.1, 0.5, 0.9]}, scoring=scorer, cv=3).fit(X, Y)
    assert (
        search.best_params_ == {"loss__level": 0.9}
        and search.best_estimator_.model_.loss_parameters["level"] == 0.9
    )
    search = GridSearchCV(
        model, {"loss": ["squared", srf.losses.Quantile(0.9)]}, scoring=scorer, cv=3
    ).fit(X, Y)
    assert search.best_params_ == {"loss": srf.losses.Quantile(0.9)}
    assert model.loss == srf.losses.Quantile(0.5) == clone(model).loss


def test_parameters_of_losses():
    model = srfs.SparseRFRegressor(loss=srf.losses.Huber(2.0))
    assert model.get_params()["loss__delta"] == 2.0 and "loss__delta" not in model.get_params(
        deep=False
    )
    assert "loss__delta" not in srfs.SparseRFRegressor(loss="huber").get_params()
    with pytest.raises(
        ValueError, match=r"an object with the parameter of 'loss__level', got Huber\(delta=2.0\)"
    ):
        model.set_params(loss__level=0.1)
    assert pickle.loads(pickle.dumps(model)).loss == srf.losses.Huber(2.0)


@pytest.mark.parametrize(
    "loss", ["logistic", srf.losses.SquaredHinge()], ids=["logistic", "squared_hinge"]
)
def test_a_loss_of_labels_is_none_for_a_regressor(loss):
    with pytest.raises(
        ValueError,
        match=r"loss must be one for real targets in HARFERegressor, got .*: see HARFEClassifier",
    ):
        srfs.HARFERegressor(loss=loss).fit(X, Y)


@pytest.mark.parametrize("loss", ["squared", "poisson", srf.losses.Quantile(0.9)], ids=str)
def test_a_loss_of_real_targets_is_none_for_a_classifier(loss):
    with pytest.raises(
        ValueError, match=r"loss must be one for labels in DRPClassifier, got .*: see DRPRegressor"
    ):
        srfs.DRPClassifier(loss=loss).fit(X, LABELS)


def test_a_loss_as_an_object_has_probabilities_too():
    few = {"n_nonzero_coefs": 5, "alpha": 1e-3, "random_state": 0}
    model = srfs.MFGAClassifier(loss=srf.losses.Logistic(), **few).fit(X, LABELS)
    assert np.array_equal(
        model.predict_proba(X),
        clone(model).set_params(loss="logistic").fit(X, LABELS).predict_proba(X),
    )


def test_errors_are_those_of_the_function():
    with pytest.raises(ValueError, match=r"features must be one of 'auto', .* got 'rbf'"):
        srfs.SparseRFRegressor(features="rbf").fit(X, Y)
    with pytest.raises(ValueError, match="loss must be one of"):
        srfs.SparseRFClassifier(loss="hinge").fit(X, LABELS)
    with pytest.raises(NotFittedError):
        srfs.MFGARegressor().predict(X)


def test_a_classifier_of_another_loss_has_no_probabilities():
    model = srfs.MFGAClassifier(loss="squared_hinge", n_nonzero_coefs=5, alpha=1e-3).fit(X, LABELS)
    assert model.decision_function(X).shape == (N, 3) and not hasattr(model, "predict_proba")
    assert hasattr(srfs.MFGAClassifier(), "predict_proba")


@pytest.mark.parametrize(
    "state",
    [0, np.random.RandomState(0), np.random.default_rng(0), None],
    ids=lambda s: type(s).__name__,
)
def test_random_states(state):
    model = clone(REGRESSORS["HARFE"]).set_params(random_state=state).fit(X, Y)
    assert model.score(X, Y) > 0.8
    if isinstance(state, int):
        assert np.array_equal(model.predict(X), clone(model).fit(X, Y).predict(X))
    if isinstance(state, np.random.RandomState):
        again = clone(model).set_params(random_state=np.random.RandomState(0)).fit(X, Y)
        assert np.array_equal(model.model_.support, again.model_.support)


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_jobs_change_nothing(estimator):
    one, two = (
        clone(estimator).set_params(n_jobs=n).fit(X, target_of(estimator)) for n in (None, 2)
    )
    assert one.model_.coef.tobytes() == two.model_.coef.tobytes()
    assert np.array_equal(one.predict(X), two.predict(X))


# What users do with estimators


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_pickle_and_clone(estimator):
    fitted = clone(estimator).fit(X, target_of(estimator))
    again = pickle.loads(pickle.dumps(fitted))
    assert (
        np.array_equal(again.predict(X), fitted.predict(X))
        and again.get_params() == fitted.get_params()
    )
    assert (
        not hasattr(clone(fitted), "model_") and clone(fitted).get_params() == fitted.get_params()
    )
    assert repr(fitted)


@pytest.mark.slow
def test_rules_are_a_parameter_to_search():
    rules = srfs.SparseRFRegressor(features=srf.Rules(n_trees=5), alpha=0.01, random_state=0)
    grid = {"features": [srf.Rules(max_conditions=1), srf.Rules(max_conditions=3)]}
    search = GridSearchCV(rules, grid, cv=3).fit(X, Y)
    assert search.best_params_["features"].max_conditions == 3  # Y has a product
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(again.predict(X), search.predict(X))
    assert again.get_params() == search.best_estimator_.get_params()


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
@pytest.mark.slow
def test_pipelines_and_cross_validation(estimator):
    y = target_of(estimator)
    scores = cross_val_score(make_pipeline(StandardScaler(), estimator), X, y, cv=3)
    assert (scores > (0.1 if "DRP" in type(estimator).__name__ else 0.3)).all(), scores
    assert cross_val_predict(estimator, X, y, cv=3).shape == (N,)


@pytest.mark.slow
def test_grid_search_in_processes():
    grid = {"harferegressor__n_nonzero_coefs": [5, 40], "harferegressor__order": [2, None]}
    pipeline = make_pipeline(
        StandardScaler(), srfs.HARFERegressor(n_components=300, alpha=1e-4, random_state=0)
    )
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2).fit(X, Y)
    alone = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert (
        search.best_params_ == alone.best_params_ and search.best_score_ == alone.best_score_ > 0.8
    )
    assert search.best_params_["harferegressor__n_nonzero_coefs"] == 40


def test_feature_importances():
    """They are those of the summary over the rows of the fit, for all outputs. They are kept in
    pickles, and do not change when the user changes X later; a model that was not fitted by the
    estimator has none."""
    Z = X.copy()
    for estimator, y in (
        (srfs.SparseRFRegressor(alpha=0.01, n_components=200, random_state=0), Y),
        (
            srfs.DRPClassifier(alpha=0.01, random_state=0),
            np.digitize(Y, np.quantile(Y, [0.3, 0.6])),
        ),
    ):
        assert not hasattr(estimator, "feature_importances_")
        estimator.fit(Z, y)
        expected = estimator.model_.importances(X).share
        again = pickle.loads(pickle.dumps(estimator))
        Z[:] = 0.0
        for one in (estimator, again, pickle.loads(pickle.dumps(estimator))):
            np.testing.assert_array_equal(one.feature_importances_, expected)
        estimator.feature_importances_[:] = 7.0
        assert abs(estimator.feature_importances_.sum() - 1) < 1e-12
        assert not hasattr(clone(estimator), "feature_importances_")
        assert not hasattr(estimator.model_.to_estimator(), "feature_importances_")
        Z[:] = X


def test_importances_and_dependence():
    model = clone(REGRESSORS["SparseRF"]).fit(X, Y)
    importance = permutation_importance(model, X, Y, n_repeats=3, random_state=0).importances_mean
    assert importance[3] < 0.1 < importance[:3].min()
    curve = partial_dependence(model, X, [2], grid_resolution=5, kind="average")
    slope = np.diff(curve["average"][0]) / np.diff(curve["grid_values"][0])
    np.testing.assert_allclose(slope, 0.5, atol=0.15)
    model = clone(CLASSIFIERS["SparseRF"]).fit(X, LABELS)
    assert partial_dependence(model, X, [0], grid_resolution=5)["average"].shape == (3, 5)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "multinomial"])
def test_calibration(loss):
    model = clone(CLASSIFIERS["MFGA"]).set_params(loss=loss)
    calibrated = CalibratedClassifierCV(model, cv=3).fit(X, LABELS)
    assert calibrated.predict_proba(X).shape == (N, 3) and calibrated.score(X, LABELS) > 0.6


def test_transformed_targets():
    model = TransformedTargetRegressor(
        clone(REGRESSORS["MFGA"]), func=np.log1p, inverse_func=np.expm1
    ).fit(X, np.exp(Y))
    assert model.predict(X).min() > -1 and model.score(X, np.exp(Y)) > 0.3


@pytest.mark.skipif(
    IS_OLD, reason="a Pipeline of scikit-learn 1.5 does not say that its score takes weights"
)
def test_weights_are_routed():
    weight = 0.01 + RNG.random(N)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            clone(REGRESSORS["MFGA"])
            .set_fit_request(sample_weight=True)
            .set_score_request(sample_weight=True)
        )
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        found = cross_validate(
            pipeline, X, Y, params={"sample_weight": weight}, cv=3, return_estimator=True
        )
        plain = cross_validate(pipeline, X, Y, params={"sample_weight": np.ones(N)}, cv=3)
    assert not np.allclose(found["test_score"], plain["test_score"])
    step = found["estimator"][0]
    part = np.arange(N) >= N // 3
    expected = clone(REGRESSORS["MFGA"]).fit(
        StandardScaler().fit_transform(X[part]), Y[part], sample_weight=weight[part]
    )
    assert np.array_equal(step[-1].model_.coef, expected.model_.coef)


# Rows that are held out

PATIENT = np.array([f"patient {k}" for k in np.arange(N) % 30])
CHOOSING = srfs.SparseRFRegressor(features="gaussian", n_components=200, random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("splitter", [TimeSeriesSplit(3), GroupKFold(3)], ids=["time", "groups"])
def test_validation_takes_a_splitter_and_fit_takes_groups(splitter):
    groups = PATIENT if isinstance(splitter, GroupKFold) else None
    model = clone(CHOOSING).set_params(validation=splitter).fit(X, Y, groups=groups)
    how = {
        "features": "gaussian",
        "n_components": 200,
        "validation": splitter,
        "groups": groups,
        "rng": 0,
    }
    assert np.array_equal(model.model_.coef, srf.sparse_rf(X, Y, **how).coef)
    assert not np.array_equal(model.model_.coef, clone(CHOOSING).fit(X, Y).model_.coef)
    assert "TimeSeriesSplit" not in repr(CHOOSING) and type(splitter).__name__ in repr(model)


@pytest.mark.slow
@pytest.mark.skipif(IS_OLD, reason="as for weights")
def test_groups_are_routed_through_pipelines_and_searches():
    """Each fit of a search is given the groups of its rows, and holds out whole groups; so is the
    last, to all rows."""
    seen = []

    class Spy(srfs.SparseRFRegressor):
        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append(groups)
            return super().fit(X, y, sample_weight, groups=groups)

    Spy.__init__, Spy._function = srfs.SparseRFRegressor.__init__, staticmethod(srf.sparse_rf)
    with sklearn.config_context(enable_metadata_routing=True):
        model = Spy(**CHOOSING.get_params()).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model)
        grid = {"spy__max_terms": [5, 50]}
        search = GridSearchCV(pipeline, grid, cv=GroupKFold(3)).fit(X, Y, groups=PATIENT)
        found = cross_validate(
            pipeline, X, Y, params={"groups": PATIENT}, cv=GroupKFold(3), return_estimator=True
        )
    assert [len(each) for each in seen] == [200] * 6 + [300] + [200] * 3
    for (fitted, _), each in zip(GroupKFold(3).split(X, Y, PATIENT), seen[-3:], strict=True):
        assert each.tolist() == PATIENT[fitted].tolist()
    fitted = next(iter(GroupKFold(3).split(X, Y, PATIENT)))[0]
    alone = clone(CHOOSING).fit(
        StandardScaler().fit_transform(X[fitted]), Y[fitted], groups=PATIENT[fitted]
    )
    assert np.array_equal(found["estimator"][0][-1].model_.coef, alone.model_.coef)
    assert search.best_estimator_[-1].model_.coef.shape[0] <= 50


@pytest.mark.parametrize("estimator", EVERY, ids=lambda each: type(each).__name__)
def test_every_estimator_takes_groups(estimator):
    y = target_of(estimator)
    assert (
        clone(estimator).fit(X, y, groups=PATIENT).model_.coef.shape
        == clone(estimator).fit(X, y).model_.coef.shape
    )
    with pytest.raises(ValueError, match="groups must have an entry for each of the 300 rows"):
        clone(estimator).fit(X, y, groups=PATIENT[:5])


@pytest.mark.parametrize("estimator", [REGRESSORS["MFGA"], CLASSIFIERS["DRP"]], ids=["MFGA", "DRP"])
def test_sparse_rows_and_float32(estimator):
    y = target_of(estimator)
    dense = np.where(np.abs(X) > 1, X, 0)
    plain = (
        clone(estimator)
        .set_params(**({"scale": None} if "scale" in estimator.get_params() else {}))
        .fit(dense, y)
    )
    for make in (sp.csr_matrix, sp.csr_array, sp.csc_matrix):
        model = clone(plain).fit(make(dense), y)
        assert np.mean(model.predict(make(dense)) == plain.predict(dense)) > 0.99 or np.allclose(
            model.predict(make(dense)), plain.predict(dense), atol=1e-4
        )
    single = clone(REGRESSORS["DRP"]).fit(X.astype(np.float32), Y)
    assert single.predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.slow
def test_several_outputs():
    several = np.stack([Y, 5 + 10 * X[:, 3]], axis=1)
    for estimator in REGRESSORS.values():
        model = clone(estimator).fit(X, several)
        assert model.predict(X).shape == (N, 2) and model.score(X, several) > 0.2
        assert (cross_val_score(estimator, X, several, cv=3) > 0).all()


def test_a_column_of_targets():
    with pytest.warns(sklearn.exceptions.DataConversionWarning, match="column-vector y"):
        model = srfs.DRPRegressor().fit(X, Y[:, None])
    assert model.predict(X).shape == (N,)


def test_a_callback():
    told = []
    srfs.MFGARegressor(n_nonzero_coefs=4, alpha=1e-3, callback=told.append).fit(X, Y)
    assert len(told) == 4


# Data frames


@pytest.fixture
def frame():
    """Return a data frame with a category and missing cells, and a target."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    town = rng.choice(["Aachen", "Bonn", "Celle"], N)
    frame = pd.DataFrame(
        {
            "a": X[:, 0],
            "town": town,
            "kind": pd.Categorical(rng.choice(["x", "y"], N)),
            "b": X[:, 1],
        }
    )
    frame.loc[::7, "a"] = np.nan
    frame.loc[::11, "town"] = None
    y = np.nan_to_num(frame["a"]) + 2 * (town == "Bonn") + (frame["kind"] == "x").to_numpy()
    return frame, y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_categories_and_missing_cells_of_a_frame(name, frame):
    table, y = frame
    for estimator, target in ((REGRESSORS[name], y), (CLASSIFIERS[name], y > 1)):
        estimator = clone(estimator)
        if "gamma" in estimator.get_params():
            estimator.set_params(gamma=None)
        fitted = estimator.fit(table, target)
        assert fitted.score(table, target) > 0.7
        assert (
            fitted.feature_names_in_.tolist() == ["a", "town", "kind", "b"]
            and fitted.n_features_in_ == 4
        )
        assert np.array_equal(fitted.predict(table), fitted.model_.predict(table))
        assert (cross_val_score(estimator, table, target, cv=3) > 0.5).all()
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.predict(table[["b", "a", "kind", "town"]])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library, frame):
    table, y = frame
    plain = clone(REGRESSORS["MFGA"]).fit(table, y)
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {
        name: [None if cell != cell else cell for cell in table[name].astype(object)]
        for name in table
    }
    other = pl.DataFrame(columns) if library == "polars" else pa.table(columns)
    model = clone(plain).fit(other, y)
    np.testing.assert_allclose(model.predict(other), plain.predict(table), rtol=1e-9, atol=1e-9)
    assert model.n_features_in_ == 4
    if library == "polars" or hasattr(other, "__dataframe__"):
        assert model.feature_names_in_.tolist() == list(table)


def test_permutation_importance_of_a_frame(frame):
    table, y = frame
    model = clone(REGRESSORS["MFGA"]).fit(table, y)
    importance = permutation_importance(
        model, table, y, n_repeats=2, random_state=0
    ).importances_mean
    assert importance[3] < 0.05 < importance[:3].min()


def test_set_output_of_what_comes_before(frame):
    table, y = frame
    encode = ColumnTransformer(
        [("codes", OrdinalEncoder(), ["kind"])], remainder="passthrough"
    ).set_output(transform="pandas")
    model = make_pipeline(encode, clone(REGRESSORS["MFGA"])).fit(table, y)
    assert model[-1].feature_names_in_.tolist() == [
        "codes__kind",
        "remainder__a",
        "remainder__town",
        "remainder__b",
    ]
    assert model.score(table, y) > 0.9


def test_a_frame_of_categories_then_an_array(frame):
    """An array after a frame is matched by the places of its columns."""
    rows, y = frame
    model = srfs.MFGARegressor(n_nonzero_coefs=4, alpha=1e-3, random_state=0).fit(rows, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(model.predict(rows.to_numpy(object)), model.predict(rows))


def test_arrays_with_categories(frame):
    table, y = frame
    cells = table.to_numpy(object)
    model = srfs.MFGARegressor(categorical=[1, 2]).fit(cells, y)
    assert model.score(cells, y) > 0.9 and model.n_features_in_ == 4
    with pytest.raises(ValueError, match="is expecting 4 features"):
        model.predict(cells[:, :3])
    with pytest.raises((TypeError, ValueError)):
        srfs.MFGARegressor().fit(cells, y)


def test_columns_of_one_name(frame):
    table, y = frame
    twice = table.set_axis(["a", "b", "a", "c"], axis=1)
    with pytest.raises(ValueError, match="different names, got more than one 'a'"):
        srfs.MFGARegressor().fit(twice, y)


@pytest.mark.slow
def test_tags():
    nan = X.copy()
    nan[::5, 0] = np.nan
    for estimator in EVERY:
        learns, raises = clone(estimator), clone(estimator).set_params(missing="raise")
        learns.fit(nan, target_of(estimator))
        with pytest.raises(ValueError, match=r"NaN|nan"):
            raises.fit(nan, target_of(estimator))
        if not IS_OLD:
            tags = learns.__sklearn_tags__()
            assert (
                tags.input_tags.allow_nan and tags.input_tags.sparse and tags.input_tags.categorical
            )
            assert not raises.__sklearn_tags__().input_tags.allow_nan
            assert (
                tags.target_tags.multi_output == is_regressor(estimator) != is_classifier(estimator)
            )


def test_rows_that_are_elsewhere():
    parts = srf.Chunks(X, block_rows=100)
    model = clone(REGRESSORS["SparseRF"]).fit(parts, Y)
    np.testing.assert_allclose(model.predict(parts), model.predict(X), rtol=1e-12)
    assert model.n_features_in_ == 4


# A model as an estimator


@pytest.fixture
def regression():
    """A model of a real target."""
    return srf.mfga(X, Y, n_nonzero_coefs=15, alpha=1e-3, rng=0)


@pytest.fixture
def classification():
    """A model of three classes."""
    return srf.mfga(X, LABELS, n_nonzero_coefs=15, alpha=1e-3, loss="logistic", rng=0)


def test_a_model_as_a_regressor(regression):
    estimator = regression.to_estimator()
    check_is_fitted(estimator)
    assert is_regressor(estimator) and estimator.model_ is regression
    assert np.array_equal(estimator.predict(X), regression.predict(X))
    assert estimator.score(X, Y) == pytest.approx(
        1 - np.mean((regression.predict(X) - Y) ** 2) / Y.var()
    )
    assert estimator.n_features_in_ == 4 and not hasattr(estimator, "feature_names_in_")
    assert not hasattr(estimator, "predict_proba") and estimator.n_iter_ == regression.info.n_iter
    with pytest.raises(ValueError, match="is expecting 4 features"):
        estimator.predict(X[:, :3])


def test_a_model_as_a_classifier(classification):
    estimator = classification.to_estimator()
    check_is_fitted(estimator)
    assert is_classifier(estimator) and estimator.classes_.tolist() == ["high", "low", "middle"]
    assert np.array_equal(estimator.predict(X), classification.predict(X))
    assert np.array_equal(estimator.predict_proba(X), classification.predict_proba(X))
    assert np.array_equal(estimator.decision_function(X), classification.decision_function(X))
    assert estimator.score(X, LABELS) == np.mean(classification.predict(X) == LABELS)
    hinge = srf.mfga(
        X, LABELS, n_nonzero_coefs=5, alpha=1e-3, loss="squared_hinge", rng=0
    ).to_estimator()
    assert not hasattr(hinge, "predict_proba")
    calibrated = CalibratedClassifierCV(hinge, cv=3).fit(X, LABELS)
    assert calibrated.predict_proba(X).shape == (N, 3)


def test_fitting_a_model_again_changes_nothing(regression):
    estimator = regression.to_estimator()
    again = clone(estimator).fit(X[:10], -Y[:10], sample_weight=np.ones(10))
    check_is_fitted(again)
    assert np.array_equal(again.predict(X), regression.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(estimator)).predict(X), regression.predict(X))
    scores = cross_val_score(estimator, X, Y, cv=3)
    assert scores[0] == pytest.approx(estimator.score(X[:100], Y[:100]))
    assert permutation_importance(estimator, X, Y, n_repeats=1).importances.shape == (4, 1)


def test_a_model_of_a_frame(frame):
    table, y = frame
    estimator = srf.mfga(table, y, n_nonzero_coefs=5, alpha=1e-3, rng=0).to_estimator()
    assert estimator.feature_names_in_.tolist() == list(table)
    assert np.array_equal(estimator.predict(table), estimator.model.predict(table))
    if not IS_OLD:
        assert estimator.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(table.rename(columns={"a": "c"}))


def test_a_model_that_is_loaded(regression, tmp_path):
    regression.save(tmp_path / "model")
    assert np.array_equal(
        srf.load(tmp_path / "model").to_estimator().predict(X), regression.predict(X)
    )


# The extra


@pytest.mark.slow
def test_scikit_learn_is_imported_when_asked_for_alone():
    code = (
        "import sys, sparserf; print('sklearn' in sys.modules); import sparserf.sklearn; "
        "print('sklearn' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_without_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None\nimport sparserf\n"
        "try:\n    sparserf.sklearn\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install sparserf[sklearn]" in done.stdout


def test_the_names():
    names = [
        f"{name}{kind}" for name in (*FUNCTIONS, "Fitted") for kind in ("Regressor", "Classifier")
    ]
    assert sorted(srfs.__all__) == sorted(names)
    for name in names:
        assert ">>>" in getattr(srfs, name).__doc__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert srf.sklearn is srfs


def test_names_of_a_made_estimator_can_be_set():
    """As other packages do on a copy, so that nothing warns of arrays in place of frames."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    estimator = srf.mfga(frame, Y, n_nonzero_coefs=3, alpha=1e-3, rng=0).to_estimator()
    names, again = estimator.feature_names_in_.tolist(), copy.deepcopy(estimator)
    again.feature_names_in_ = None
    assert again.feature_names_in_ is None and again.model.feature_names_in_ == tuple(names)
    assert np.array_equal(again.predict(X), estimator.model.predict(X))
    assert estimator.feature_names_in_.tolist() == names == list(frame)
    assert clone(again).feature_names_in_.tolist() == names
