"""Kinds of input, wrong, odd and extreme, and every public function that takes them: the tables of
`test_every_input.py`."""

import inspect
import re

import numpy as np
import pytest
import scipy.sparse as sp

import sparserf as srf

N, D = 24, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (N, D))
Y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(N)
LABELS = np.where(Y > np.median(Y), "up", "down")
CSR = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))

SMALL = {"n_components": 40, "rng": 0}
NAMED = {"features": "gaussian", **SMALL}


def fitting(function, **options):
    """Return a function that fits with these options, unless others are given; of a path it returns
    the last model."""

    def fit(X, y, **changes):
        model = function(X, y, **{**options, **changes})
        return model[-1] if isinstance(model, list) else model

    fit.function = function
    return fit


FITS = {
    "sparse_rf": fitting(srf.sparse_rf, alpha=0.01, **NAMED),
    "sparse_rf exact": fitting(srf.sparse_rf, alpha=0.01, exact=True, **NAMED),
    "sparse_rf auto": fitting(srf.sparse_rf, **SMALL),
    "sparse_rf searched": fitting(srf.sparse_rf, **NAMED),
    "sparse_rf_path": fitting(srf.sparse_rf_path, n_alphas=2, **NAMED),
    "harfe": fitting(srf.harfe, n_nonzero_coefs=4, alpha=1e-4, **SMALL),
    "harfe chosen": fitting(srf.harfe, **SMALL),
    "harfe_path": fitting(srf.harfe_path, n_nonzero_coefs=[2, 4], **SMALL),
    "mfga": fitting(srf.mfga, n_nonzero_coefs=4, rng=0),
    "mfga_path": fitting(srf.mfga_path, n_nonzero_coefs=4, rng=0),
    "drp": fitting(srf.drp, alpha=0.01, rng=0),
    "drp sketched": fitting(srf.drp, alpha=0.01, n_projections=2, rng=0),
    "drp of the paper": fitting(
        srf.drp, alpha=0.01, n_projections=50, accelerate=False, n_iter=20, rng=0
    ),
    "drp_path": fitting(srf.drp_path, alphas=[0.1, 0.01], rng=0),
}


def parameters(name):
    """Return the parameters of a function of FITS."""
    return inspect.signature(FITS[name].function).parameters


def refused(name, function, *given, **options):
    """Check that a call raises a ValueError or TypeError that names the argument."""
    with pytest.raises((ValueError, TypeError), match=rf"\b{name}\b"):
        function(*given, **options)


def leaks(name, calls):
    """Return what the calls gave, by name, that did not raise a ValueError or TypeError naming the
    argument."""
    found = {}
    for kind, call in calls.items():
        try:
            found[kind] = call()
        except (ValueError, TypeError) as error:
            if not re.search(rf"\b{name}\b", str(error)):
                found[kind] = error
    return found


def check_finite(model, X):
    """Check that a model, and all that it answers for X, are finite numbers, and return the
    model."""
    answers = [model.coef, model.intercept, model.decision_function(X)]
    told = model.info.dual_gap, model.info.alpha, model.info.validation_loss
    answers += [each for each in told if each is not None]
    answers += [model.info.objective, model.input_usage()]
    answers += [model.predict_proba(X)] if model.loss == "logistic" else []
    answers += [model.predict(X)] if model.classes is None else []
    assert all(np.isfinite(answer).all() for answer in answers)
    assert len(model.predict(X)) == X.shape[0]
    return model


def put(array, place, value):
    """Return a copy of an array with a value put in a place."""
    array = np.array(array, copy=True)
    array[place] = value
    return array


def objects(items):
    """Return a one-dimensional object array of any items."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


def unaligned(array):
    """Return an array in memory that is not aligned."""
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    memory[...] = array
    assert not memory.flags.aligned
    return memory


def field(array):
    """Return an array as a field of a structured array: strided and unaligned."""
    records = np.zeros(array.shape, [("tag", "i1"), ("value", array.dtype)])
    records["value"] = array
    return records["value"]


def frozen(matrix):
    """Make the arrays of a sparse matrix read-only."""
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


def changed(matrix, **arrays):
    """Replace arrays of a sparse matrix behind its back."""
    for name, value in arrays.items():
        setattr(matrix, name, value)
    return matrix


def unsorted_csr(copies=1, zeros=False, index=np.int32):
    """Return CSR with entries in any order, split into duplicates, or with zeros stored."""
    coo = CSR.tocoo()
    row, column, data = (
        np.tile(coo.row, copies),
        np.tile(coo.col, copies),
        np.tile(coo.data / copies, copies),
    )
    if zeros:
        row, column = np.append(row, np.arange(N)), np.append(column, np.arange(N) % D)
        data = np.append(data, np.zeros(N))
    order = np.lexsort((np.random.default_rng(0).permutation(len(row)), row))
    indptr = np.searchsorted(row[order], np.arange(N + 1))
    matrix = sp.csr_array(
        (data[order], column[order].astype(index), indptr.astype(index)), shape=CSR.shape
    )
    assert matrix.indices.dtype == index
    return matrix


# X that is wrong: refused, with X named

# Missing cells of dense arrays: wrong where missing="raise", and for functions that cannot learn
# from them.
MISSING = {
    "nan": put(X, (7, 1), np.nan),
    "float32 nan": put(X, (7, 1), np.nan).astype(np.float32),
    "object nan": put(X.astype(object), (3, 2), float("nan")),
}
BAD_X = {
    "inf": put(X, (0, 0), np.inf),
    "minus inf": put(X, (N - 1, D - 1), -np.inf),
    "inf - inf": put(put(X, (0, 0), np.inf), (1, 0), -np.inf),
    "float16 inf": put(X, (7, 1), np.inf).astype(np.float16),
    "object None": put(X.astype(object), (3, 2), None),
    "object text": put(X.astype(object), (3, 2), "one"),
    "object digits": X.astype(str).astype(object),
    "object complex": put(X.astype(object), (3, 2), 1j),
    "object dict": put(X.astype(object)[:, :1], (3, 0), {}),
    "object too large": put(X.astype(object), (3, 2), 10**400),
    "longdouble too large": X.astype(np.longdouble) * np.longdouble(10) ** 4000,
    "1-d": X[:, 0],
    "3-d": X[:, :, None],
    "0-d": 1.0,
    "None": None,
    "dict": {"a": 1},
    "0 columns": X[:, :0],
    "empty list": [],
    "ragged": [[1.0, 2.0], [3.0]],
    "complex": X.astype(complex),
    "strings": X.astype(str),
    "bytes": X.astype("S"),
    "dates and numbers": put(np.zeros((N, D), "M8[s]").astype(object), (3, 2), 1.5),
    "durations in months": np.zeros((N, D), "m8[M]"),
    "structured": np.zeros((N, D), [("a", float)]),
    "masked": np.ma.array(X, mask=np.abs(X) > 1.5),
    "masked int": np.ma.array(np.ones((N, D), int), mask=np.eye(N, D)),
    "sparse complex": CSR.astype(complex),
    "sparse nan": sp.csr_array(put(CSR.toarray(), (7, 1), np.nan)),
    "sparse csc inf": sp.csc_array(put(CSR.toarray(), (7, 1), np.inf)),
    "sparse 1-d": sp.coo_array(X[:, 0]),
    "sparse 0 columns": sp.csr_array((N, 0)),
}
# wrong to train on
NO_ROWS = {"0 rows": X[:0], "sparse 0 rows": CSR[:0], "sparse 0 rows of bool": CSR[:0].astype(bool)}

LAST = CSR.nnz
BROKEN = {  # parts of a CSR matrix: a place in an array and its value, or None and the whole array
    "index too large": {"indices": (0, D)},
    "index huge": {"indices": (5, 2**31 - 1)},
    "index negative": {"indices": (LAST - 1, -1)},
    "index very negative": {"indices": (0, -(2**31))},
    "indptr decreasing": {"indptr": (10, 0)},
    "indptr negative": {"indptr": (1, -5)},
    "indptr start": {"indptr": (0, 1)},
    "indptr end": {"indptr": (N, LAST + 1)},
    "indptr beyond": {"indptr": (3, 10**8)},
    "indptr short": {"indptr": (None, CSR.indptr[:-1])},
    "indptr long": {"indptr": (None, np.append(CSR.indptr, LAST))},
    "indptr empty": {"indptr": (None, CSR.indptr[:0])},
    "indptr 0-d": {"indptr": (None, 0)},
    "indptr 2-d": {"indptr": (None, np.stack([CSR.indptr] * (N + 1)))},
    "indptr float": {"indptr": (None, CSR.indptr + 0.5)},
    "indices short": {"indices": (None, CSR.indices[:-1])},
    "indices long": {"indices": (None, np.append(CSR.indices, 0).astype(np.int32))},
    "indices empty": {"indices": (None, CSR.indices[:0])},
    "indices 2-d": {"indices": (None, np.stack([CSR.indices] * 2))},
    "indices float": {"indices": (None, CSR.indices + 0.5)},
    "indices text": {"indices": (None, CSR.indices.astype(str))},
    "data short": {"data": (None, CSR.data[:-1])},
    "data long": {"data": (None, np.append(CSR.data, 1.0))},
    "data 2-d": {"data": (None, np.stack([CSR.data] * 2))},
    "data nan": {"data": (0, np.nan)},
}


def broken(how):
    """Return CSR with a part changed."""
    matrix = CSR.copy()
    for name, (place, value) in BROKEN[how].items():
        setattr(
            matrix,
            name,
            np.asarray(value) if place is None else put(getattr(matrix, name), place, value),
        )
    return matrix


# X that is odd but legal: the same model as the plain array of the same numbers

WIDE = np.random.default_rng(1).uniform(-2, 2, (2 * N, 2 * D))
WIDE[::2, ::2] = X
WHOLE = np.round(2 * X)


def frame(values):
    """Return a pandas DataFrame."""
    return pytest.importorskip("pandas").DataFrame(values)


def series(values):
    """Return a pandas Series with the index in descending order."""
    return pytest.importorskip("pandas").Series(values, index=np.arange(len(values))[::-1])


# (X, or a function that makes it anew; the same numbers as a float64 or float32 array, or as CSR)
LEGAL_X = {
    "list": (X.tolist(), X),
    "list of arrays": (list(X), X),
    "tuples": (tuple(map(tuple, X.tolist())), X),
    "fortran": (np.asfortranarray(X), X),
    "strided": (WIDE[::2, ::2], X),
    "negative strides": (np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1], X),
    "broadcast rows": (np.broadcast_to(X[:1], X.shape), np.tile(X[:1], (N, 1))),
    "broadcast columns": (np.broadcast_to(X[:, :1], X.shape), np.tile(X[:, :1], (1, D))),
    "read-only": (np.frombuffer(X.tobytes()).reshape(X.shape), X),
    "unaligned": (unaligned(X), X),
    "field": (field(X), X),
    "masked nowhere": (np.ma.array(X, mask=False), X),
    "matrix": (X.view(np.matrix), X),
    "subclass": (X.view(type("Sub", (np.ndarray,), {})), X),
    "big endian": (X.astype(">f8"), X),
    "longdouble": (X.astype(np.longdouble), X),
    "object": (X.astype(object), X),
    "object int": (WHOLE.astype(int).astype(object), WHOLE),
    "float16": (X.astype(np.float16), X.astype(np.float16).astype(float)),
    "big endian float32": (X.astype(">f4"), X.astype(np.float32).astype(float)),
    "int8": (WHOLE.astype(np.int8), WHOLE),
    "int64": (WHOLE.astype(np.int64), WHOLE),
    "uint8": (np.abs(WHOLE).astype(np.uint8), np.abs(WHOLE)),
    "big endian int": (WHOLE.astype(">i4"), WHOLE),
    "bool": (X > 0, (X > 0).astype(float)),
    "DataFrame": (lambda: frame(X), X),
    "DataFrame of kinds": (
        lambda: frame({"a": X[:, 0], "b": WHOLE[:, 1].astype(int), "c": X[:, 2] > 0}),
        np.column_stack([X[:, 0], WHOLE[:, 1], X[:, 2] > 0]),
    ),
    "csr_matrix": (sp.csr_matrix(CSR), CSR),
    "csc_array": (sp.csc_array(CSR), CSR),
    "csc_matrix": (sp.csc_matrix(CSR), CSR),
    "coo_array": (sp.coo_array(CSR), CSR),
    "coo_matrix": (sp.coo_matrix(CSR), CSR),
    "bsr": (sp.bsr_array(CSR.toarray(), blocksize=(2, 3)), CSR),
    "dia": (sp.dia_array(CSR), CSR),
    "lil": (sp.lil_array(CSR), CSR),
    "dok": (sp.dok_array(CSR), CSR),
    "unsorted": (unsorted_csr(), CSR),
    "duplicates": (unsorted_csr(copies=2), CSR),
    "zeros": (unsorted_csr(zeros=True), CSR),
    "int64 indices": (unsorted_csr(copies=2, zeros=True, index=np.int64), CSR),
    "read-only csr": (frozen(CSR.copy()), CSR),
    "read-only unsorted": (frozen(unsorted_csr(copies=2)), CSR),
    "longdouble csr": (sp.csr_array(CSR, dtype=np.longdouble), CSR),
    "int csr": (sp.csr_array(WHOLE.astype(np.int32)), sp.csr_array(WHOLE)),
    "bool csr": (sp.csr_array(X > 0), sp.csr_array((X > 0).astype(float))),
    "big endian csr": (changed(CSR.copy(), data=CSR.data.astype(">f8")), CSR),
    "unaligned csr": (changed(CSR.copy(), data=unaligned(CSR.data)), CSR),
    "spare room": (
        sp.csr_array(
            (np.append(CSR.data, 9.0), np.append(CSR.indices, 0), CSR.indptr), shape=CSR.shape
        ),
        CSR,
    ),
}

# X that is hard: a finite model, or a ValueError that says what is wrong

SPARSE_ROWS = put(CSR.toarray(), slice(0, 12), 0.0)
EXTREME_X = {
    "all zero": np.zeros((N, D)),
    "all 1e300": np.full((N, D), 1e300),
    "constant column": X * [1, 0, 1] + [0, 5, 0],
    "one column": X[:, :1],
    "constant one column": np.full((N, 1), 3.0),
    "equal rows": np.tile(X[:1], (N, 1)),
    "equal columns": np.tile(X[:, :1], (1, D)),
    "more columns than rows": np.random.default_rng(2).standard_normal((N, 40)),
    "times 1e-320": X * 1e-320,
    "times 1e-200": X * 1e-200,
    "times 1e100": X * 1e100,
    "times 1e160": X * 1e160,
    "times 1e307": X * 5e307,
    "one entry of 1e308": put(X, (3, 1), 1e308),
    "one entry of -1e308": put(X, (3, 1), -1e308),
    "one entry of 1e-320": put(X * 0, (3, 1), 1e-320),
    "columns of any size": X * [1e-300, 1.0, 1e300],
    "plus 1e15": X + 1e15,
    "float32 times 1e-42": (X * 1e-42).astype(np.float32),
    "float32 times 1e30": (X * 1e30).astype(np.float32),
    "float32 times 1e38": (X * 1.5e38).astype(np.float32),
    "int64 limits": np.where(X > 0, 2**63 - 1, -(2**63)),
    "empty rows": sp.csr_array(SPARSE_ROWS),
    "empty columns": sp.csr_array(CSR.toarray() * [1, 0, 1]),
    "no entries": sp.csr_array((N, D)),
    "csr times 1e307": sp.csr_array(CSR * 5e307),
    "csr times 1e-320": sp.csr_array(CSR * 1e-320),
    "csr one entry of 1e308": sp.csr_array(put(CSR.toarray(), (3, 1), 1e308)),
    "csr float32 times 1e38": sp.csr_array((CSR * 1.5e38).astype(np.float32)),
}
FEW_ROWS = {
    "one row": (X[:1], 1),
    "two rows": (X[:2], 2),
    "one number": (X[:1, :1], 1),
    "csr one row": (CSR[[0]], 1),
}

# Targets and labels

BAD_SHAPE = {
    "short": Y[:-1],
    "long": np.append(Y, 0.0),
    "empty": [],
    "0-d": 1.0,
    "None": None,
    "row": Y[None],
    "3-d": Y[:, None, None],
    "sparse": sp.csr_array(Y[:, None]),
    "no output": np.zeros((N, 0)),
    "ragged": [[1.0]] * (N - 1) + [[1.0, 2.0]],
}
BAD_NUMBERS = {
    "nan": put(Y, 5, np.nan),
    "inf": put(Y, 5, np.inf),
    "inf - inf": put(put(Y, 5, np.inf), 6, -np.inf),
    "complex": Y.astype(complex),
    "strings": np.abs(Y).astype(str),
    "object text": put(Y.astype(object), 5, "one"),
    "object None": put(Y.astype(object), 5, None),
    "object nan": put(Y.astype(object), 5, float("nan")),
    "object digits": np.abs(Y).astype(str).astype(object),
    "object too large": put(Y.astype(object), 5, 10**400),
    "longdouble too large": np.abs(Y).astype(np.longdouble) * np.longdouble(10) ** 4000,
    "dates": np.zeros(N, "M8[s]"),
    "structured": np.zeros(N, [("a", float)]),
    "masked": np.ma.array(np.abs(Y), mask=Y > 0.5),
}
BOTH = np.stack([Y, Y], axis=1)
BAD_OUTPUTS = {  # bad targets of two outputs
    "two outputs short": BOTH[:-1],
    "two of no output": BOTH[:, :0],
    "two outputs 3-d": BOTH[:, :, None],
    "two outputs sparse": sp.csr_array(BOTH),
    "two outputs nan": put(BOTH, (5, 1), np.nan),
    "two outputs complex": BOTH.astype(complex),
    "two outputs strings": BOTH.astype(str),
    "two outputs masked": np.ma.array(BOTH, mask=BOTH > 1),
    "two outputs object None": put(BOTH.astype(object), (5, 1), None),
}
SIGNS = np.sign(Y)
BAD_LABELS = {
    "nan": put(SIGNS, 5, np.nan),
    "inf": put(SIGNS, 5, np.inf),
    "object nan": put(SIGNS.astype(object), 5, float("nan")),
    "object nan beside text": put(LABELS.astype(object), 5, float("nan")),
    "object None": put(LABELS.astype(object), 5, None),
    "object text beside number": put(LABELS.astype(object), 5, 1),
    "object pairs": objects([(int(label), 1) for label in Y > 0]),
    "object lists": objects([[1] * (1 + int(label)) for label in Y > 0]),
    "complex": SIGNS.astype(complex),
    "dates": (Y > 0).astype("M8[s]"),
    "structured": np.zeros(N, [("a", float)]),
    "masked": np.ma.array(Y > 0, mask=Y > 0.5),
    "one class": np.ones(N),
    "one string": np.full(N, "up"),
    "two columns": np.stack([SIGNS, SIGNS], axis=1),
}
TARGETS = {  # legal targets
    "all equal": np.full(N, 0.1),
    "all zero": np.zeros(N),
    "two values": SIGNS,
    "one differs": put(np.zeros(N), 3, 1.0),
    "integer": np.round(3 * Y).astype(int),
    "bool": Y > 0,
    "float16": Y.astype(np.float16),
    "float32": Y.astype(np.float32),
    "big endian": Y.astype(">f8"),
    "object": Y.astype(object),
    "list": Y.tolist(),
    "strided": np.repeat(Y, 3)[::3],
    "read-only": np.frombuffer(Y.tobytes()),
    "unaligned": unaligned(Y),
    "masked nowhere": np.ma.array(Y, mask=False),
    "Series": lambda: series(Y),
    "times 1e300": Y * 1e300 / np.abs(Y).max(),
    "times 1.7e308": Y * (1.7e308 / np.abs(Y).max()),
    "times 1e-300": Y * 1e-300,
    "times 1e-310": Y * 1e-310,
    "plus 1e15": Y + 1e15,
    "one of 1e300": put(Y, 3, 1e300),
}
CLASSES = {
    "strings": LABELS,
    "bytes": LABELS.astype("S"),
    "object strings": LABELS.astype(object),
    "bool": Y > 0,
    "integers": np.where(Y > 0, 7, -3),
    "int64 limits": np.where(Y > 0, 2**63 - 1, -(2**63)),
    "floats": np.where(Y > 0, 1e300, -1e-300),
    "list": LABELS.tolist(),
    "Series": lambda: series(LABELS),
    "one of them once": put(np.zeros(N, int), 3, 1),
    "three": np.digitize(Y, [-0.3, 0.3]),
    "eight": np.arange(N) % 8,
    "two of a class": np.arange(N) // 2,
}


BAD_OFFSETS = {
    **{f"shape: {name}": bad for name, bad in BAD_SHAPE.items() if name != "None"},
    **BAD_NUMBERS,
}
BAD_WEIGHTS = {
    **BAD_OFFSETS,
    "zeros": np.zeros(N),
    "one negative": put(np.ones(N), 3, -1e-300),
    "negative": -np.ones(N),
}

# Options that more than one has

POSITIVE = [
    0,
    0.0,
    -1,
    -0.0,
    np.nan,
    np.inf,
    -np.inf,
    True,
    np.True_,
    "1",
    None,
    [1.0],
    np.ones(1),
    1j,
    10**400,
]
COUNT = [0, -1, 1.0, 2.5, np.float64(3), True, np.True_, "1", [1], np.ones(1, int), 1j, np.nan]
SEEDS = ["0", -1, 1.5, [-1], {}, 1j]
FLAGS = [0, 1, None, "True", [True], 1.0, np.ones(1, bool)]
OTHER_SET = srf.Fourier(gamma=1.0).draw(10, D + 1, rng=0)
BAD_OPTIONS = {
    "alpha": [bad for bad in POSITIVE if bad is not None],
    "scale": ["auto", "standard", "", True, 1.0, ["robust"]],
    "missing": ["drop", "", None, True, 1, np.nan, ["learn"]],
    "extrapolate": ["flat", "", True, 1, np.nan, ["constant"]],
    "categorical": [
        3,
        "ab",
        b"x",
        True,
        [D],
        [-1],
        [0, 10**20],
        ["x0"],
        [1.5],
        [None],
        [[0]],
        [True] * (D + 1),
        [True, 1],
    ],
    "alphas": [
        [],
        [[0.1]],
        [0.1, 0],
        [0.1, -1],
        [0.1, np.nan],
        [np.inf],
        "0.1",
        ["a"],
        [0.1, None],
        [1j],
        [True, True],
        True,
        {0.1},
        0,
        -1,
        [10**400],
        [[0.1], [0.1, 0.2]],
    ],
    "n_alphas": [*COUNT, None],
    "alpha_min_ratio": [*POSITIVE, 1.0000001, 2, 1e300],
    "tol": [bad for bad in POSITIVE if bad is not None],
    "time_limit": [bad for bad in POSITIVE if bad is not None],
    "gamma": [bad for bad in POSITIVE if bad is not None] + ["median", "KNN", b"knn"],
    "validation": [*(bad for bad in POSITIVE if bad is not None), 1, 1.5],
    "n_components": COUNT,
    "n_nonzero_coefs": [bad for bad in COUNT if not isinstance(bad, (list, np.ndarray))],
    "n_projections": COUNT,
    "max_terms": COUNT,
    "batch_size": COUNT,
    "max_iter": COUNT,
    "workers": [*(bad for bad in COUNT if type(bad) is not int), 0, -2, None, np.ones(2, int)],
    "rng": SEEDS,
    "loss": [
        "",
        "Squared",
        "hinge",
        None,
        1,
        ["squared"],
        ("squared",),
        {"squared"},
        b"squared",
        np.array("squared"),
    ],
    "offset": BAD_OFFSETS.values(),
    "projection": ["", "normal", None, 1, ["auto"]],
    "features": [
        "",
        "rbf",
        1,
        [],
        (),
        ["gaussian"],
        srf.Fourier,
        b"gaussian",
        X,
        OTHER_SET,
        OTHER_SET.take([]),
        [OTHER_SET],
        {"gaussian"},
        [srf.Linear(), None],
    ],
    "exact": FLAGS,
    "fit_intercept": FLAGS,
    "normalize": FLAGS,
    "best_phase": FLAGS,
    "backtracking": FLAGS,
    "accelerate": FLAGS,
    "n_select": COUNT,
    "n_iter": COUNT,
    "step_size": [0, -1.0, np.nan, "a", [1.0]],
    "selection": ["", "best", None, 1, ["sample"]],
    "start": ["", "warm", 1, X],
    "activation": ["", "sigmoid", 1, ["sin"]],
    "callback": [1, "print", [print], {}, True],
    "sample_weight": BAD_WEIGHTS.values(),
}

# Options for which zero is legal.
LEGAL_ZEROS = {
    ("harfe", "tol"),
    ("harfe chosen", "tol"),
    ("harfe_path", "tol"),
    ("mfga", "tol"),
    ("mfga_path", "tol"),
    ("mfga", "alpha"),
    ("mfga_path", "alpha"),
}
