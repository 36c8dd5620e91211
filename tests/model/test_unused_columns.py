"""What leaves the process of a model, in files, pickles and code, says nothing of the cells of
columns that no term uses."""

import pickle

import numpy as np
import pandas as pd
import pytest

import sparserf as srf

N = 300
RNG = np.random.default_rng(0)
NUMBERS = 777.1234567 + RNG.random(N)
DATA = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "user": [f"user{k}" for k in range(N)],
        "kind": RNG.choice(["secret", "hidden"], N),
        "code": RNG.integers(31_000, 31_020, N),
        "wage": NUMBERS,
        "gaps": np.where(RNG.random(N) < 0.5, np.nan, NUMBERS),
        "flag": RNG.random(N) > 0.5,
    }
)
SECRETS = ["user1", "secret", "hidden", "3101", "777.", "778."]
WAYS = {
    "file": lambda model, path: model.save(path),
    "JSON": lambda model, path: path.write_text(model.to_json()),
    "pickle": lambda model, path: path.write_bytes(pickle.dumps(model)),
    "estimator": lambda model, path: path.write_bytes(pickle.dumps(model.to_estimator())),
    "C": lambda model, path: model.to_c(path),
    "ONNX": lambda model, path: model.to_onnx(path),
    "SQL": lambda model, path: model.to_sql(path),
    "text": lambda model, path: path.write_text(model.formula()),
    "LaTeX": lambda model, path: path.write_text(model.formula("latex")),
    "Python": lambda model, path: path.write_text(model.formula("python")),
    "SymPy": lambda model, path: path.write_text(model.formula("sympy")),
    "JAX": lambda model, path: path.write_text(model.formula("jax")),
    "repr": lambda model, path: path.write_text(repr(model) + str(model.summary())),
    "HTML": lambda model, path: path.write_text(model._repr_html_()),
}


def model_of_a(**about):
    with np.errstate(all="ignore"):
        return srf.mfga(
            DATA,
            3 * DATA["a"],
            features=srf.Linear(),
            n_nonzero_coefs=1,
            alpha=1e-9,
            categorical=["code"],
            rng=0,
            **about,
        )


@pytest.fixture(scope="module")
def model():
    with pytest.warns(UserWarning, match="holds words that are others in each row"):
        model = model_of_a()
    assert np.flatnonzero(model.features.columns_seen).tolist() == [0]
    return model


@pytest.mark.parametrize("way", WAYS)
def test_nothing_about_columns_that_are_not_used(model, way, tmp_path):
    if way == "ONNX":
        pytest.importorskip("onnx")
    path = tmp_path / "model.npz"
    WAYS[way](model, path)
    written = path.read_bytes()
    assert written and not [secret for secret in SECRETS if secret.encode() in written]
    near = np.frombuffer(written[: len(written) // 8 * 8], np.float64)
    assert not ((near > 777) & (near < 779)).any()


@pytest.mark.parametrize("again", ["file", "pickle"])
def test_any_cells_of_the_kind_are_taken_there(model, again, tmp_path):
    if again == "file":
        model.save(tmp_path / "m.npz")
        other = srf.load(tmp_path / "m.npz")
        values = [
            a
            for a in vars(other.features.encoder).values()
            if isinstance(a, np.ndarray) and a.dtype == float
        ]
        assert not any(((array > 700) & (array < 800)).any() for array in values)
    else:
        other = pickle.loads(pickle.dumps(model))
    assert other.feature_names_in_ == model.feature_names_in_ and dict(other.ranges) == dict(
        model.ranges
    )
    later = DATA.assign(user="new", kind=None, code=7, wage=-1e9, gaps=np.nan, flag=False)
    for rows in (DATA, later, later.astype({"code": float, "flag": object})):
        assert np.array_equal(other.predict(rows), model.predict(rows))
    with pytest.raises(TypeError, match="wage"):
        other.predict(DATA.assign(wage="word"))


def test_ranges_and_values_of_unused_columns_are_not_given_away(tmp_path):
    """Also where columns have no encodings, so that the features are given away as they are."""
    X = np.column_stack([RNG.normal(size=N), NUMBERS, RNG.integers(0, 2, N) + 778.0])
    model = srf.mfga(X, X[:, 0], features=srf.Linear(), n_nonzero_coefs=1, alpha=1e-9, rng=0)
    assert model.ranges.known(1) and 2 in model.ranges.taken  # the model itself knows them
    model.save(tmp_path / "m.npz")
    for other in (srf.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        assert other.ranges.column.tolist() == [0] and not other.ranges.taken
        assert dict(other.ranges) == dict(model.ranges)


def test_levels_and_knots_of_columns_that_are_used_stay(tmp_path):
    y = (
        2 * np.tanh(5 * DATA["a"])
        + (DATA["kind"] == "secret")
        + np.isin(DATA["code"], range(31_000, 31_010)) * DATA["wage"]
    )
    whole = srf.sparse_rf(
        DATA.drop(columns="user"), y, alpha=0.01, categorical=["code"], n_components=300, rng=0
    )
    whole.save(tmp_path / "m.npz")
    rows = DATA.drop(columns="user")
    assert np.array_equal(srf.load(tmp_path / "m.npz").predict(rows), whole.predict(rows))


def test_after_pruning(tmp_path):
    rows = DATA.drop(columns="user")
    y = 3 * DATA["a"] + 0.1 * (DATA["kind"] == "secret")
    whole = srf.mfga(
        rows, y, features=srf.Linear(), n_nonzero_coefs=2, alpha=1e-9, categorical=["code"], rng=0
    )
    small = srf.prune(whole, rows, max_terms=1)
    small.save(tmp_path / "m.npz")
    assert b"secret" not in (tmp_path / "m.npz").read_bytes() and "secret" in whole.to_c()


def test_arrays_with_categories(tmp_path):
    Z = np.column_stack([DATA["a"], DATA["code"], DATA["kind"]]).astype(object)
    for used in ([0, 1, 2], [0, 1]):
        about = {"features": srf.Linear(), "n_nonzero_coefs": 1, "categorical": used[1:], "rng": 0}
        model = srf.mfga(Z[:, used], Z[:, 0].astype(float), **about)
        model.save(tmp_path / "m.npz")
        later = Z[:, used].copy()
        later[:5, 1:] = None
        for rows in (Z[:, used], later):
            assert np.array_equal(srf.load(tmp_path / "m.npz").predict(rows), model.predict(rows))


def test_a_fit_that_starts_from_a_file_says_which_columns_it_does_not_see(model, tmp_path):
    """The model itself knows the encodings of all columns, and a fit from it searches them all."""
    rows = DATA.drop(columns="user")
    first = srf.sparse_rf(
        rows, 3 * DATA["a"], features=srf.Linear(), alpha=1.0, scale="robust", rng=0
    )
    assert not first.features.columns_seen.all()
    first.save(tmp_path / "m.npz")
    about = {"features": srf.Linear(), "alpha": 1e-3, "rng": 0}
    y = 3 * DATA["a"] + DATA["wage"]
    assert srf.sparse_rf(rows, y, start=first, **about).features.columns_seen[3]
    with pytest.warns(UserWarning, match="those columns alone that its terms use"):
        again = srf.sparse_rf(rows, y, start=srf.load(tmp_path / "m.npz"), **about)
    assert not again.features.columns_seen[3] or not again.coef[..., 3:].any()
