"""What callbacks, terminals and logs are told of long work: a share that never falls, and 1 at the end."""

import io
import sys
from functools import partial

import numpy as np
import pytest

import sparserf as srf
from sparserf import _display, reports

X = np.random.default_rng(0).uniform(-2, 2, (150, 3))
Y = np.sin(2 * X[:, 0]) * X[:, 1]
LABELS = np.digitize(Y, [-0.3, 0.3])
NAMED = {"features": "gaussian", "n_components": 100, "rng": 0}
FITS = {
    "sparse_rf": lambda **k: srf.sparse_rf(X, Y, n_models=1, n_components=60, max_terms=10, rng=0, **k),
    "three classes": lambda **k: srf.sparse_rf(X, LABELS, loss="logistic", alpha=0.05, batch_size=50, **NAMED, **k),
    "exact": lambda **k: srf.sparse_rf(X, Y, alpha=0.01, exact=True, **NAMED, **k),
    "path": lambda **k: srf.sparse_rf_path(X, Y, n_alphas=4, **NAMED, **k),
    "harfe": lambda **k: srf.harfe(X, Y, n_components=100, rng=0, **k),
    "harfe_path": lambda **k: srf.harfe_path(X, Y, n_nonzero_coefs=[2, 5], n_components=100, rng=0, **k),
    "mfga": lambda **k: srf.mfga(X, Y, n_nonzero_coefs=5, n_select=2, rng=0, **k),
    "drp": lambda **k: srf.drp(X, LABELS, alpha=1e-3, loss="logistic", rng=0, **k),
    "multinomial": lambda **k: srf.sparse_rf(X, LABELS, loss="multinomial", alpha=0.05, batch_size=50, **NAMED, **k),
    "multinomial harfe": lambda **k: srf.harfe(X, LABELS, loss="multinomial", n_components=100, rng=0, **k),
    "multinomial mfga": lambda **k: srf.mfga(X, LABELS, loss="multinomial", n_nonzero_coefs=4, rng=0, **k),
    "multinomial drp": lambda **k: srf.drp(X, LABELS, loss="multinomial", alpha=1e-3, rng=0, **k),
    "drp_path": lambda **k: srf.drp_path(X, Y, alphas=[1, 0.1], rng=0, **k),
}


@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_the_share_never_falls_and_ends_at_one(name):
    shares = []
    fitted = FITS[name](callback=lambda info: shares.append(info.progress))
    assert shares == sorted(shares) and 0 <= shares[0] and shares[-1] == 1.0 and shares.count(1.0) <= 3
    for model in fitted if isinstance(fitted, list) else [fitted]:
        assert model.info.progress == 1.0


def test_held_out_loss_is_told_while_alpha_is_searched():
    told = []
    model = FITS["sparse_rf"](callback=lambda info: told.append(info.validation_loss))
    known = [loss for loss in told if loss is not None]
    assert known and 0 < min(known) <= Y.var() and told[-1] == model.info.validation_loss


def test_a_callback_that_ends_the_fit_is_not_asked_again():
    told = []
    srf.mfga(X, Y, n_nonzero_coefs=5, rng=0, callback=lambda info: told.append(info) or len(told) == 2)
    assert len(told) == 2


def test_parts_divide_what_is_left():
    with reports.reporting("x", lambda info: None, False) as report:
        begins = []
        for _ in reports.parts([1, 2], [1, 3]):
            begins.append(report.span[:2])
            begins += [report.span[0] for _ in reports.parts("ab")]
        assert np.allclose(begins[0], (0, 0.25)) and np.allclose(begins[1:3], (0, 0.125))
        assert np.allclose(begins[3], (0.25, 1)) and np.allclose(begins[4:], (0.25, 0.625))


def test_nearness_is_in_powers_of_ten():
    assert reports.nearness(1.0, 1e-2, 1e-4) == pytest.approx(0.5) and reports.nearness(1.0, 1e-9, 1e-4) == 1
    assert reports.nearness(1.0, np.inf, 1e-4) == reports.nearness(1.0, 0.5, 0.0) == 0


def test_lines_of_the_log(caplog):
    caplog.set_level("INFO", "sparserf")
    FITS["mfga"](verbose=True)
    assert caplog.messages[-1].startswith("mfga: 100 % done, 5 terms, ")


def test_intervals_and_calibration_are_shown(caplog):
    caplog.set_level("INFO", "sparserf")
    fit = partial(srf.mfga, n_nonzero_coefs=5)
    for method in ("split", "cv+"):
        one, other = (srf.intervals(fit, X, Y, method=method, cv=3, rng=0, verbose=verbose) for verbose in (True, False))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
        assert caplog.messages[-1].startswith("intervals: 100 % done, 5 terms, ")
    one, other = (
        srf.calibrated(partial(fit, loss="logistic"), X, LABELS, cv=3, rng=0, verbose=verbose) for verbose in (True, False)
    )
    np.testing.assert_array_equal(one.coef, other.coef)
    assert caplog.messages[-1].startswith("calibrated: 100 % done, ")
    shares = [int(message.split()[1]) for message in caplog.messages if message.startswith("calibrated")]
    assert shares == sorted(shares)


def test_lines_on_standard_error_where_nobody_has_set_up_logging(monkeypatch, capsys):
    monkeypatch.setattr("logging.Logger.hasHandlers", lambda self: False)
    FITS["harfe"](verbose=True)
    FITS["harfe"]()
    assert capsys.readouterr().err.count("harfe: 100 % done") == 1


def test_a_bar_in_a_terminal(monkeypatch):
    pytest.importorskip("tqdm")
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    FITS["mfga"](verbose=True)
    assert "mfga: 100 %" in screen.getvalue() and "5 terms" in screen.getvalue()
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert isinstance(_display.display("x"), _display.Lines)


def test_verbose_changes_nothing_and_is_checked():
    assert np.array_equal(FITS["mfga"](verbose=True).coef, FITS["mfga"]().coef)
    with pytest.raises(TypeError, match="verbose must be True or False"):
        FITS["mfga"](verbose=2)
