"""Links: what predictions are of f, and back."""

import numpy as np
import pytest

from sparserf.losses.links import LINKS

links = pytest.mark.parametrize("link", LINKS.values(), ids=list(LINKS))


@links
def test_predictions_are_finite_and_rise(link):
    f = np.array([-900.0, -3.0, -0.5, 0.0, 0.25, 2.0, 900.0])
    for dtype in (np.float64, np.float32):
        prediction = link.predict(f.astype(dtype))
        assert prediction.dtype == dtype and np.isfinite(prediction).all()
        assert (np.diff(prediction) >= 0).all()


@links
def test_margins_and_limits_are_those_of_predictions(link):
    for value in (0.1, 1.0, 7.3, 1e6):
        f = link.margin(value)
        assert link.predict(np.array([f]))[0] == pytest.approx(value, rel=1e-12)
        lower, upper = link.limit("lower", value, 1.0), link.limit("upper", value, -1.0)
        assert lower == pytest.approx(f) and upper == pytest.approx(f)
        assert link.predict(np.array([lower]))[0] >= value >= link.predict(np.array([upper]))[0]
    assert link.limit("lower", None, 1.0) is None


@links
def test_a_shift_keeps_the_mean_prediction(link, rng):
    f, g, weight = rng.standard_normal(50), rng.standard_normal(50), rng.uniform(0, 2, 50)
    weight *= 50 / weight.sum()
    shifted = link.predict(g + link.shift(f, g, weight))
    assert weight @ shifted == pytest.approx(weight @ link.predict(f))
