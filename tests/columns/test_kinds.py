"""Each kind of encoding says of itself what the kernel computes, and its derivatives and bounds are
those of that."""

import numpy as np
import pytest

from sparserf._core import moments
from sparserf.calculus.encodings import encoding_derivatives
from sparserf.columns.encoder import ColumnEncoder
from sparserf.columns.kinds import KINDS, Encoding

X = np.random.default_rng(0).normal(0, 4, 100)
each = pytest.mark.parametrize("k", range(len(KINDS)), ids=[kind.name for kind in KINDS])


def encoder_of(k, unit=1.0):
    """Return an encoder of one encoding of a kind."""
    encoder = ColumnEncoder.from_encodings([Encoding(0, k, 1.0)], 1)
    encoder.unit.flags.writeable = True
    encoder.unit[0] = unit
    return encoder


def test_names_are_those_of_the_kernel():
    assert tuple(kind.name for kind in KINDS) == moments.KINDS


@each
def test_encodings_are_what_the_kernel_computes(k):
    kind, x = KINDS[k], np.concatenate([X, [0.0, 1.0, np.nan]])
    encoded = encoder_of(k).transform(x[:, None])[:, 0]
    expected = kind.raw(x, 1.0)
    expected = np.where(np.isnan(x), 0.0, expected) if kind.is_continuous else expected
    np.testing.assert_allclose(encoded, expected, atol=1e-15)
    assert (encoded[-3] == 0) == kind.keeps_zero or not kind.keeps_zero
    assert kind.is_number == (kind.is_continuous and not kind.turn)


@each
def test_derivatives_and_their_bounds(k):
    if not KINDS[k].is_continuous:
        pytest.skip("a step has no derivatives")
    encoder, h, x = encoder_of(k, 0.7), 1e-5, np.sort(X)
    u = [encoder.transform((x + shift)[:, None])[:, 0] for shift in (-h, 0, h)]
    first, second = zip(
        *(encoding_derivatives(encoder, (x + shift)[:, None]) for shift in (-h, 0, h)), strict=True
    )
    first = [np.broadcast_to(each[:, 0], len(x)) for each in first]
    np.testing.assert_allclose(first[1], (u[2] - u[0]) / (2 * h), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(
        second[1][:, 0], (first[2] - first[0]) / (2 * h), rtol=1e-7, atol=1e-7
    )
    least, most = encoder.encoding(0).slopes(x, np.ones(len(x) - 1))
    chord = np.diff(u[1]) / np.diff(x)
    assert ((least <= chord + 1e-9) & (chord <= most + 1e-9)).all()
    assert encoder.rises[0] == (first[1] >= 0).all()
