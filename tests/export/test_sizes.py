"""The size of files, C and ONNX: weights that are mostly 0 are written without their zeros, and
predict the same."""

import ctypes
import shutil
import subprocess
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import sparserf as srf
from sparserf.features import Activation, BumpBlock, NeuronBlock

RNG = np.random.default_rng(0)
D, N = 100, 200
X = RNG.standard_normal((50, D))
THERE = RNG.random((N, D)) < RNG.choice([0.01, 0.05, 0.2], N)[:, None]
WEIGHTS = np.where(THERE, RNG.standard_normal((N, D)), 0.0)
BLOCKS = {
    **{
        name: lambda name=name: NeuronBlock(name, 1.0, WEIGHTS, RNG.standard_normal(N))
        for name in get_args(Activation)
    },
    "bumps": lambda: BumpBlock(1.0, WEIGHTS, np.where(THERE, RNG.standard_normal((N, D)), 0.0)),
    "bumps with centers everywhere": lambda: BumpBlock(1.0, WEIGHTS, RNG.standard_normal((N, D))),
}


@pytest.fixture(scope="module", params=BLOCKS)
def model(request):
    """A model of 200 terms, whose weights are mostly 0."""
    any_model = srf.drp(X, X[:, 0], alpha=0.1, rng=0)
    features = srf.FeatureSet([BLOCKS[request.param]()], D)
    return replace(any_model, features=features, coef=RNG.standard_normal(N), support=np.arange(N))


def test_files_are_small_and_read_back_to_the_same_bits(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = srf.load(tmp_path / "m.npz")
    assert srf.features.are_same(again.features, model.features)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    has_centers = getattr(model.features.blocks[0], "centers", np.zeros(1)).all()
    assert has_centers or (tmp_path / "m.npz").stat().st_size < 0.3 * WEIGHTS.nbytes


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
def test_c_is_small(model, tmp_path):
    text = model.to_c(tmp_path / "m.c")
    assert len(text) < 0.6 * 3 * WEIGHTS.size + 45 * np.count_nonzero(WEIGHTS) * (
        1 + ("centers" in text)
    )
    command = [
        "cc",
        "-O1",
        "-fPIC",
        "-shared",
        "-o",
        str(tmp_path / "m.so"),
        str(tmp_path / "m.c"),
        "-lm",
    ]
    subprocess.run(command, check=True)
    predict = ctypes.CDLL(str(tmp_path / "m.so")).predict
    predict.restype = ctypes.c_double
    f = np.array([predict(ctypes.c_void_p(row.ctypes.data)) for row in X])
    np.testing.assert_allclose(f, model.predict(X), rtol=1e-12, atol=1e-12)


def test_graphs_are_small(model):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    graph = model.to_onnx(dtype="float64").SerializeToString()
    if not hasattr(model.features.blocks[0], "centers"):
        assert len(graph) < 0.3 * WEIGHTS.nbytes
    f = runtime.InferenceSession(graph).run(None, {"X": X})[0][:, 0]
    np.testing.assert_allclose(f, model.predict(X), rtol=1e-12, atol=1e-12)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "change",
    [
        lambda places: places[::-1].copy(),
        lambda places: places[:-1],
        lambda places: places - 10**6,
        lambda places: places + N * D,
        lambda places: places.astype(np.int64),
        lambda places: places[None],
        lambda places: np.zeros_like(places),
    ],
)
def test_places_that_do_not_fit_are_refused(change, tmp_path):
    model = replace(
        srf.drp(X, X[:, 0], alpha=0.1, rng=0),
        coef=np.ones(N),
        support=np.arange(N),
        features=srf.FeatureSet([BLOCKS["cos"]()], D),
    )
    model.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays["places_0"] = change(arrays["places_0"])
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(ValueError, match=r"m\.npz is not a whole model: .*(places|weights)"):
        srf.load(tmp_path / "m.npz")


def test_few_numbers_do_not_claim_much_memory(tmp_path):
    """A file of ten weights cannot stand for an array of a gigabyte: such weights are written
    whole, and refused if not."""
    wide = np.zeros((2, 100_000))
    wide[:, 3] = 1
    model = srf.drp(np.eye(3), np.arange(3.0), alpha=0.1, rng=0)
    features = srf.FeatureSet([NeuronBlock("cos", 1.0, wide, np.zeros(2))], 100_000)
    model = replace(model, coef=np.ones(2), support=np.arange(2), features=features)
    model.save(tmp_path / "m.npz")
    assert (tmp_path / "m.npz").stat().st_size > wide.nbytes
    with np.load(tmp_path / "m.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= {"weights_0": np.ones(2), "places_0": np.array([3, 100_003], np.int32)}
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(ValueError, match="weights is missing or inconsistent"):
        srf.load(tmp_path / "m.npz")
