"""Chunks of data frames with words: the model is that of the whole frame, after one more pass that
learns the levels."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparserf as srf

RNG = np.random.default_rng(0)
N, ROWS = 600, 150
KIND, CITY = RNG.choice(["u", "v", "w"], N), RNG.integers(0, 60, N)
FRAME = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"]).assign(
    kind=KIND, city=[f"c{k}" for k in CITY]
)
Y = FRAME["b"].to_numpy() + (KIND == "u") + RNG.normal(size=60)[CITY]
FRAME.loc[::17, "kind"], FRAME.loc[::13, "a"] = None, np.nan
# The same table as a reader may give it: columns in another order, a block in which all of a column
# is missing.
LATE = FRAME.copy()
LATE.loc[: ROWS - 1, "kind"], LATE.loc[: ROWS - 1, "a"] = None, np.nan

KERNEL = {"features": "gaussian", "gamma": 0.1, "n_components": 200, "rng": 0}
FITS = {
    "sparse_rf": lambda Z, **more: srf.sparse_rf(Z, Y, alpha=0.05, **KERNEL, **more),
    "sparse_rf chosen": lambda Z, **more: srf.sparse_rf(
        Z, Y, features="gaussian", n_components=100, rng=0, **more
    ),
    "sparse_rf logistic": lambda Z, **more: srf.sparse_rf(
        Z, Y > 0, loss="logistic", alpha=0.05, **KERNEL, **more
    ),
    "harfe": lambda Z, **more: srf.harfe(
        Z, Y, n_nonzero_coefs=8, alpha=1e-4, n_components=200, rng=0, **more
    ),
    "mfga": lambda Z, **more: srf.mfga(Z, Y, n_nonzero_coefs=8, alpha=1e-3, **KERNEL, **more),
    "drp": lambda Z, **more: srf.drp(Z, Y, alpha=0.1, rng=0, **more),
}
KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def rows_of(frame, start, stop):
    """Return some rows of a frame of any library."""
    if isinstance(frame, pa.Table):
        return frame.slice(start, stop - start)
    return frame.iloc[start:stop] if isinstance(frame, pd.DataFrame) else frame[start:stop]


def in_chunks(frame, asked=None, **more):
    """Return chunks of a frame, whose blocks but the first have their columns in another order.

    asked : a list to which the first row of each block that is read is added
    """

    def read(start, stop):
        if asked is not None:
            asked.append(start)
        block = rows_of(frame, start, stop)
        if start == 0 or isinstance(block, np.ndarray):
            return block
        names = ["city", "b", "kind", "a"]
        return block[names] if isinstance(block, pd.DataFrame) else block.select(names)

    return srf.Chunks(read, (N, 4), block_rows=ROWS, **more)


def is_same_model(model, other, X):
    """Check that two models have the same table, and the same predictions up to the order of
    sums."""
    assert model.features.encoder.table == other.features.encoder.table
    np.testing.assert_allclose(
        model.decision_function(X), other.decision_function(X), rtol=1e-6, atol=1e-7
    )


@pytest.mark.filterwarnings("ignore::sparserf.GroupedRowsWarning")  # y has an effect of the city
@pytest.mark.parametrize("frame", [FRAME, LATE], ids=["frame", "late"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FITS)
def test_the_model_is_that_of_the_whole_frame(name, kind, frame):
    model, whole = FITS[name](in_chunks(KINDS[kind](frame))), FITS[name](frame)
    is_same_model(model, whole, frame)
    np.testing.assert_array_equal(
        model.predict(in_chunks(KINDS[kind](frame))), model.predict(frame)
    )
    np.testing.assert_array_equal(
        whole.predict(in_chunks(KINDS[kind](frame))), whole.predict(frame)
    )


@pytest.mark.parametrize("name", FITS)
def test_one_pass_learns_the_levels_and_one_gives_their_codes(name):
    """Where all levels are given, the first of the two is not made."""
    learnt, given = [], []
    FITS[name](in_chunks(FRAME, learnt))
    levels = {"kind": ["u", "v", "w", "x"], "city": sorted(f"c{k}" for k in range(60))}
    FITS[name](in_chunks(FRAME, given, levels=levels))
    assert learnt.count(ROWS) == given.count(ROWS) + 1
    if name == "drp":
        assert learnt.count(ROWS) <= 9


def test_levels_that_are_given_have_their_order_and_those_of_no_row_are_left_out():
    model = srf.drp(in_chunks(FRAME, levels={"kind": ["w", "v", "x", "u"]}), Y, alpha=0.1, rng=0)
    assert model.features.encoder.table.levels[2] == ("w", "v", "u")
    np.testing.assert_allclose(
        model.predict(FRAME), srf.drp(FRAME, Y, alpha=0.1, rng=0).predict(FRAME), atol=1e-6
    )


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"kind": ["u", "v"], "city": [f"c{k}" for k in range(60)]}, r"X\[0:150\]|X\['kind'\]"),
        ({"kind": ["u", "v", "w"], "city": [f"c{k}" for k in range(59)]}, r"X\['city'\]"),
        ({"kind": ["u", "u", "v", "w"]}, r"different levels of X\['kind'\]"),
        ({"kind": []}, r"different levels of X\['kind'\]"),
        ({"size": ["u"]}, "lacks them: 'size'"),
        ({"kind": 3}, "levels must be a dict"),
        ({"kind": "uvw"}, "levels must be a dict"),
        (["u"], "levels must be a dict"),
    ],
)
def test_levels_that_are_refused(levels, words):
    with pytest.raises((ValueError, TypeError), match=words):
        srf.drp(in_chunks(FRAME, levels=levels), Y, alpha=0.1, rng=0)


@pytest.mark.slow
def test_weights_of_zero_and_groups():
    weight, groups = np.where(KIND == "w", 0.0, 1.0), CITY % 7
    for Z in (in_chunks(FRAME), FRAME):
        model = srf.mfga(Z, Y, n_nonzero_coefs=6, alpha=1e-3, sample_weight=weight, **KERNEL)
        assert model.features.encoder.table.levels[2] == ("u", "v")
    models = [
        srf.sparse_rf(Z, Y, groups=groups, alpha=0.05, **KERNEL) for Z in (in_chunks(FRAME), FRAME)
    ]
    is_same_model(*models, FRAME)


def test_categorical_and_columns_of_arrays():
    """Numbers that are categories, in frames and in arrays of objects."""
    frame = FRAME.assign(city=CITY)
    is_same_model(
        *(srf.drp(Z, Y, alpha=0.1, rng=0, categorical=["city"]) for Z in (in_chunks(frame), frame)),
        frame,
    )
    array = FRAME.to_numpy()
    models = [
        srf.drp(Z, Y, alpha=0.1, rng=0, categorical=[2, 3]) for Z in (in_chunks(array), array)
    ]
    is_same_model(*models, array)
    np.testing.assert_array_equal(models[0].predict(in_chunks(array)), models[0].predict(array))
    with pytest.raises(TypeError, match=r"X\[:, 2\] holds strings: list it in categorical"):
        srf.drp(in_chunks(array), Y, alpha=0.1, rng=0, categorical=[3])


@pytest.mark.slow
def test_orders_of_levels_and_constraints():
    """A column that all blocks order has that order; monotone=1 takes it from the first block."""
    frame = FRAME.assign(kind=pd.Categorical(FRAME["kind"], ["w", "u", "v"], ordered=True))
    models = [
        srf.sparse_rf(Z, Y, alpha=0.05, monotone={"kind": 1}, **KERNEL)
        for Z in (in_chunks(frame), frame)
    ]
    assert models[0].features.encoder.table.levels[2] == ("w", "u", "v")
    is_same_model(*models, frame)
    # of other categories each
    blocks = [FRAME[k : k + ROWS].astype({"kind": "category"}) for k in range(0, N, ROWS)]
    is_same_model(
        srf.drp(srf.Chunks.of_batches(blocks), Y, alpha=0.1, rng=0),
        srf.drp(FRAME, Y, alpha=0.1, rng=0),
        FRAME,
    )


def test_single_precision_where_all_blocks_have_it():
    frame = FRAME.astype({"a": np.float32, "b": np.float32})
    model = srf.mfga(in_chunks(frame), Y, n_nonzero_coefs=8, alpha=1e-3, **KERNEL)
    np.testing.assert_allclose(
        model.predict(frame),
        srf.mfga(frame, Y, n_nonzero_coefs=8, alpha=1e-3, **KERNEL).predict(frame),
        atol=1e-4,
    )
    mixed = [frame[:ROWS], FRAME[ROWS:]]
    srf.mfga(srf.Chunks.of_batches(mixed), Y, n_nonzero_coefs=8, alpha=1e-3, **KERNEL)


def changed(block, what):
    """Return a block of the frame that is not as the others."""
    return {
        "a new level": lambda: block.assign(kind="new"),
        "numbers for words": lambda: block.assign(kind=1.0),
        "words for numbers": lambda: block.assign(b="x"),
        "no column": lambda: block.drop(columns="kind"),
        "an infinite number": lambda: block.assign(b=np.inf),
        "lists": lambda: block.assign(b=[[1]] * len(block)),
        "fewer rows": lambda: block[:-1],
        "other rows": lambda: block[::-1],
        "an array": lambda: block[["a", "b"]].to_numpy(),
        "nothing": lambda: None,
    }[what]()


WHAT = [
    "a new level",
    "numbers for words",
    "words for numbers",
    "no column",
    "an infinite number",
    "lists",
    "fewer rows",
    "other rows",
    "an array",
    "nothing",
]


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_block_that_changes_after_the_first_pass_is_named(what, after):
    times = []
    after += what == "other rows"  # of which the first pass, which learns levels, tells nothing

    def read(start, stop):
        block = FRAME[start:stop]
        if start != 300:
            return block
        times.append(start)
        return changed(block, what) if len(times) > after else block

    with pytest.raises(srf.BlockError, match=r"^X\[300:450\]: "):
        srf.drp(
            srf.Chunks(read, (N, 4), block_rows=ROWS), Y > 0, loss="logistic", alpha=1e-3, rng=0
        )


@pytest.mark.every_case
@pytest.mark.parametrize(
    "what", ["numbers for words", "words for numbers", "no column", "lists", "nothing"]
)
def test_a_block_unlike_the_others_is_named_in_the_first_pass(what):
    blocks = [FRAME[k : k + ROWS] for k in range(0, N, ROWS)]
    blocks[2] = changed(blocks[2], what)
    chunks = srf.Chunks(lambda a, b: blocks[a // ROWS], (N, 4), block_rows=ROWS)
    with pytest.raises(srf.BlockError, match=r"^X\[300:450\]: "):
        srf.drp(chunks, Y, alpha=0.1, rng=0)


def test_levels_that_a_model_has_not_seen_are_predicted_as_in_memory():
    model = srf.drp(in_chunks(FRAME), Y, alpha=0.1, rng=0)
    new = FRAME.assign(kind="new")
    np.testing.assert_array_equal(model.predict(in_chunks(new)), model.predict(new))
    of_array = srf.drp(FRAME[["b"]].to_numpy(), Y, alpha=0.1, rng=0)
    chunks = srf.Chunks(lambda a, b: FRAME[["b"]][a:b], (N, 1), block_rows=ROWS)
    np.testing.assert_array_equal(of_array.predict(chunks), of_array.predict(FRAME[["b"]]))


# Batches


@pytest.mark.parametrize("kind", ["list", "polars", "record batches", "arrays"])
def test_batches_one_after_the_other(kind, tmp_path):
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    pq.write_table(table, tmp_path / "rows.parquet")
    batches = {
        "list": [FRAME[:100], FRAME[100:101], FRAME[101:101], FRAME[101:]],
        "polars": lambda: pl.from_pandas(FRAME).iter_slices(ROWS),
        "record batches": lambda: pq.ParquetFile(tmp_path / "rows.parquet").iter_batches(170),
        "arrays": lambda: iter(np.array_split(FRAME[["b"]].to_numpy(), 7)),
    }[kind]
    X = FRAME[["b"]].to_numpy() if kind == "arrays" else FRAME
    chunks = srf.Chunks.of_batches(batches)
    model, whole = (srf.sparse_rf(Z, Y, alpha=0.05, **KERNEL) for Z in (chunks, X))
    np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-7)
    np.testing.assert_array_equal(model.predict(chunks), model.predict(X))


def test_batches_are_counted_unless_their_sizes_are_given():
    passes = []

    def batches():
        passes.append(1)
        return iter([FRAME[:300], FRAME[300:]])

    first = srf.Chunks.of_batches(batches)
    counted = len(passes)
    assert (
        repr(first)
        == repr(srf.Chunks.of_batches(batches, block_rows=[300, 300]))
        == "Chunks(600 × 4, in 2 blocks)"
    )
    assert (counted, len(passes)) == (2, 3)  # the first batch tells the columns


def endless():
    """Yield batches without end."""
    while True:
        yield FRAME[:300]


ONCE = iter([FRAME[:300], FRAME[300:]])


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("batches", "words"),
    [
        (iter([FRAME]), "batches must be a sequence, or a function"),
        ((FRAME for _ in range(2)), "batches must be a sequence, or a function"),
        (3, "batches must be a sequence, or a function"),
        ("rows.parquet", "batches must be a sequence, or a function"),
        (lambda: None, "batches must return an iterator"),
        (lambda: [], "at least one|got None"),
        ([None], "got None as the first"),
        ([[1.0, 2.0]], "got .* as the first"),
    ],
)
def test_batches_that_are_refused(batches, words):
    with pytest.raises((TypeError, ValueError), match=words):
        srf.Chunks.of_batches(batches)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("batches", "words"),
    [
        (lambda: ONCE, "end at row"),
        (endless, "do not end at row 600"),
        (lambda: iter([FRAME[:200], FRAME[200:]]), r"one of rows 0 to 200"),
        (lambda: iter([FRAME[:300]]), "end at row 300"),
        (lambda: iter([FRAME[:300], FRAME[300:], FRAME[:1]]), "do not end at row 600"),
        (lambda: (_ for _ in [FRAME[:300], 1 / 0]), "ZeroDivisionError"),
    ],
)
def test_batches_that_are_others_than_they_were_said_to_be(batches, words):
    with pytest.raises(srf.BlockError, match=words):
        srf.drp(
            srf.Chunks.of_batches(_first_well(batches), block_rows=[300, 300]), Y, alpha=0.1, rng=0
        )


def _first_well(batches):
    """Return batches whose first is asked for once before anything is wrong."""
    asked = []

    def make():
        asked.append(1)
        return iter([FRAME[:300], FRAME[300:]]) if len(asked) == 1 else batches()

    return make
