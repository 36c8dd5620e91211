"""Progress in callbacks, terminals, logs and notebooks: its share of the work never falls, and is 1
at the end."""

import io
import logging
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import sparserf as srf
from sparserf._base import display as _display
from sparserf._base import progress as reports
from sparserf.algorithms import fit_progress

AFTER_TWO_SECONDS = _display.AUTO_DELAY  # as it is where no test sets it

X = np.random.default_rng(0).uniform(-2, 2, (150, 3))
Y = np.sin(2 * X[:, 0]) * X[:, 1]
LABELS = np.digitize(Y, [-0.3, 0.3])
NAMED = {"features": "gaussian", "n_components": 100, "rng": 0}
FITS = {
    "sparse_rf": lambda **k: srf.sparse_rf(X, Y, n_components=60, max_terms=10, rng=0, **k),
    "three classes": lambda **k: srf.sparse_rf(
        X, LABELS, loss="logistic", alpha=0.05, batch_size=50, **NAMED, **k
    ),
    "exact": lambda **k: srf.sparse_rf(X, Y, alpha=0.01, exact=True, **NAMED, **k),
    "path": lambda **k: srf.sparse_rf_path(X, Y, n_alphas=4, **NAMED, **k),
    "harfe": lambda **k: srf.harfe(X, Y, n_components=100, rng=0, **k),
    "harfe_path": lambda **k: srf.harfe_path(
        X, Y, n_nonzero_coefs=[2, 5], n_components=100, rng=0, **k
    ),
    "mfga": lambda **k: srf.mfga(X, Y, n_nonzero_coefs=5, alpha=1e-3, n_select=2, rng=0, **k),
    "drp": lambda **k: srf.drp(X, LABELS, alpha=1e-3, loss="logistic", rng=0, **k),
    "multinomial": lambda **k: srf.sparse_rf(
        X, LABELS, loss="multinomial", alpha=0.05, batch_size=50, **NAMED, **k
    ),
    "multinomial harfe": lambda **k: srf.harfe(
        X, LABELS, loss="multinomial", n_components=100, rng=0, **k
    ),
    "multinomial mfga": lambda **k: srf.mfga(
        X, LABELS, loss="multinomial", n_nonzero_coefs=4, alpha=1e-3, rng=0, **k
    ),
    "multinomial drp": lambda **k: srf.drp(X, LABELS, loss="multinomial", alpha=1e-3, rng=0, **k),
    "drp_path": lambda **k: srf.drp_path(X, Y, alphas=[1, 0.1], rng=0, **k),
}


@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_the_share_never_falls_and_ends_at_one(name):
    shares = []
    fitted = FITS[name](callback=lambda info: shares.append(info.progress))
    assert (
        shares == sorted(shares) and 0 <= shares[0] and shares[-1] == 1.0 and shares.count(1.0) <= 3
    )
    for model in fitted if isinstance(fitted, list) else [fitted]:
        assert model.info.progress == 1.0


@pytest.mark.slow
def test_held_out_loss_is_told_while_alpha_is_searched():
    told = []
    model = FITS["sparse_rf"](callback=lambda info: told.append(info.validation_loss))
    known = [loss for loss in told if loss is not None]
    assert known and 0 < min(known) <= Y.var() and told[-1] == model.info.validation_loss


def test_a_callback_that_ends_the_fit_is_not_asked_again():
    told = []
    srf.mfga(
        X,
        Y,
        n_nonzero_coefs=5,
        alpha=1e-3,
        rng=0,
        callback=lambda info: told.append(info) or len(told) == 2,
    )
    assert len(told) == 2


def test_parts_divide_the_span_of_the_work():
    with reports.reporting("x", lambda info: None, False) as report:
        begins = []
        for _ in reports.parts([1, 2], [1, 3]):
            begins.append(report.span[:2])
            begins += [report.span[0] for _ in reports.parts("ab")]
        assert np.allclose(begins[0], (0, 0.25)) and np.allclose(begins[1:3], (0, 0.125))
        assert np.allclose(begins[3], (0.25, 1)) and np.allclose(begins[4:], (0.25, 0.625))


def test_nearness_is_in_powers_of_ten():
    assert (
        reports.nearness(1.0, 1e-2, 1e-4) == pytest.approx(0.5)
        and reports.nearness(1.0, 1e-9, 1e-4) == 1
    )
    assert reports.nearness(1.0, np.inf, 1e-4) == reports.nearness(1.0, 0.5, 0.0) == 0


def test_lines_of_the_log(caplog):
    caplog.set_level("INFO", "sparserf")
    FITS["mfga"](verbose=True)
    assert caplog.messages[-1].startswith("mfga: 100 % done, 5 terms, ")


@pytest.mark.slow
def test_intervals_and_calibration_are_shown(caplog):
    caplog.set_level("INFO", "sparserf")
    fit = partial(srf.mfga, n_nonzero_coefs=5, alpha=1e-3)
    for method in ("split", "cv+"):
        one, other = (
            srf.intervals(fit, X, Y, method=method, cv=3, rng=0, verbose=verbose)
            for verbose in (True, False)
        )
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
        assert caplog.messages[-1].startswith("intervals: 100 % done, 5 terms, ")
    one, other = (
        srf.calibrated(partial(fit, loss="logistic"), X, LABELS, cv=3, rng=0, verbose=verbose)
        for verbose in (True, False)
    )
    np.testing.assert_array_equal(one.coef, other.coef)
    assert caplog.messages[-1].startswith("calibrated: 100 % done, ")
    shares = [
        int(message.split()[1]) for message in caplog.messages if message.startswith("calibrated")
    ]
    assert shares == sorted(shares)


@pytest.fixture
def terminal(monkeypatch):
    """Make standard error a terminal on which progress is shown from the first moment on; return
    what is written."""
    screen = io.StringIO()
    screen.isatty = lambda: True
    for module in (_display, reports):
        monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=screen, modules=sys.modules))
    monkeypatch.setattr(_display, "AUTO_DELAY", 0.0)
    monkeypatch.setattr(_display, "REDRAW_INTERVAL", 0.0)
    monkeypatch.delenv("TERM", raising=False)
    return screen


def drawn(screen):
    """Return each line that was drawn over the line before."""
    return [text.strip() for text in screen.getvalue().split("\r") if text.strip()]


def rows_of(written, width=300):
    """Return the lines that a terminal shows in the end."""
    rows, at = [[" "] * width], 0
    for letter in written:
        if letter == "\n":
            rows.append([" "] * width)
        if letter in "\r\n":
            at = 0
        else:
            rows[-1][at], at = letter, at + 1
    return ["".join(row).rstrip() for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("level", [None, logging.WARNING])
def test_lines_on_standard_error_where_no_logger_takes_them(level, monkeypatch, capsys):
    """A fit that writes to a pipe logs to standard error, whether logging is not set up, or for
    warnings alone."""
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging.getLogger(), "handlers", [] if level is None else [handler])
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)
    FITS["harfe"](verbose=True)
    FITS["harfe"]()
    assert capsys.readouterr().err.count("harfe: 100 % done") == 1 and not handler.stream.getvalue()


@pytest.mark.parametrize("name", ["sparserf", None])
def test_lines_of_a_handler_that_takes_them_alone(name, monkeypatch, capsys):
    handler = logging.StreamHandler(io.StringIO())
    logger = logging.getLogger(name)
    monkeypatch.setattr(logger, "handlers", [logging.NullHandler(), handler])
    # to pytest's own handlers
    monkeypatch.setattr(logging.getLogger("sparserf"), "propagate", name is None)
    monkeypatch.setattr(logging.getLogger("sparserf"), "level", logging.INFO)
    logging.getLogger("sparserf").manager._clear_cache()
    FITS["harfe"](verbose=True)
    assert handler.stream.getvalue().count("harfe: 100 % done") == 1 and not capsys.readouterr().err
    handler.setLevel(logging.WARNING)
    FITS["harfe"](verbose=True)
    assert capsys.readouterr().err.count("harfe: 100 % done") == 1
    logging.getLogger("sparserf").manager._clear_cache()


def test_a_long_fit_is_shown_unasked_and_leaves_nothing_behind(terminal):
    FITS["mfga"]()
    assert drawn(terminal)[0].startswith("mfga: ") and " % done" in drawn(terminal)[0]
    assert rows_of(terminal.getvalue()) == [""]


def test_verbose_leaves_its_line(terminal):
    FITS["mfga"](verbose=True)
    line, rest = rows_of(terminal.getvalue())
    assert line.startswith("mfga: 100 % done, 5 terms, ") and rest == ""


def test_the_time_that_is_left_is_an_estimate_or_what_the_limit_leaves(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_display.time, "monotonic", lambda: now[0])
    free, limited = _display.ElapsedTime("x"), _display.ElapsedTime("x", 8.0)
    now[0] = 103.0
    assert [free.text(share, None, None).split(", ")[1:] for share in (0.0, 0.25, 1.0)] == [
        ["3.0 s"],
        ["3.0 s", "about 9 s left"],
        ["3.0 s"],
    ]
    assert [
        limited.text(share, None, None).split(", ")[-1] for share in (0.0, 0.25, 0.75, 1.0)
    ] == ["at most 5 s left", "at most 5 s left", "about 1 s left", "3.0 s"]
    now[0] = 110.0
    assert limited.text(0.1, None, None).endswith("at most 0 s left")


def test_a_fit_is_shown_unasked_once_two_seconds_are_gone(terminal, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_display, "AUTO_DELAY", AFTER_TWO_SECONDS)
    monkeypatch.setattr(_display.time, "monotonic", lambda: now[0])
    line = _display.display("x", "terminal", None, False, time_limit=5.0)
    for now[0] in (0.0, 1.9, 2.0, 2.1):
        line(0.5, None, None)
    assert drawn(terminal) == [
        "x: 50 % done, 2.0 s, about 2 s left",
        "x: 50 % done, 2.1 s, about 2 s left",
    ]
    line.close()


def test_a_short_fit_is_not_shown_and_none_where_nobody_looks(terminal, monkeypatch, caplog):
    FITS["mfga"](verbose=False)
    monkeypatch.setattr(_display, "AUTO_DELAY", 60.0)
    FITS["mfga"]()
    monkeypatch.setattr(_display, "AUTO_DELAY", 0.0)
    caplog.set_level("INFO")
    for stream in (io.StringIO(), None, object()):
        monkeypatch.setattr(reports.sys, "stderr", stream)
        FITS["mfga"]()
    monkeypatch.setattr(reports.sys, "stderr", terminal)
    monkeypatch.setattr(
        "multiprocessing.process.parent_process", lambda: "another that shows its own line"
    )
    FITS["mfga"]()
    assert terminal.getvalue() == "" and not caplog.messages


def test_a_terminal_that_goes_away_ends_no_fit(terminal):
    terminal.close()
    terminal.isatty = lambda: True
    assert len(FITS["mfga"]().coef) == len(FITS["mfga"](verbose=True).coef) == 5


@pytest.mark.slow
@pytest.mark.parametrize("inner", [None, True])
def test_the_outermost_call_has_the_line(terminal, inner):
    """A call with verbose=False silences all fits that it makes."""
    fit = partial(srf.mfga, n_nonzero_coefs=5, alpha=1e-3, verbose=inner)
    for verbose in (False, None):
        srf.cross_validate(fit, X, Y, {"alpha": [0.1, 0.01]}, cv=3, rng=0, verbose=verbose)
        srf.intervals(fit, X, Y, method="cv+", cv=3, rng=0, verbose=verbose)
        shown = {text.split(":")[0] for text in drawn(terminal)}
        assert shown == (set() if verbose is False else {"cross_validate", "intervals"})
    srf.mfga(
        X,
        Y,
        n_nonzero_coefs=2,
        alpha=1e-3,
        rng=0,
        verbose=False,
        callback=lambda info: FITS["drp"]() is None,
    )
    assert not any(text.startswith(("mfga", "drp")) for text in drawn(terminal))


class Line:
    """A display that notes the shares that it is to show."""

    def __init__(self, shares):
        self._shares = shares

    def __call__(self, share, held_out, n_terms):
        self._shares.append(share)

    def finish(self, held_out, n_terms):
        pass

    def close(self):
        pass


@pytest.mark.parametrize("name", ["calibrated", "intervals", "cross_validate", "distill"])
def test_fits_within_a_call_show_how_far_it_is(name, monkeypatch):
    """Between the ends of its fits, too: the share rises as the iterations of a fit end. Nothing
    else changes."""
    shares = []
    line = Line(shares)
    monkeypatch.setattr(
        _display,
        "display",
        lambda name, screen, verbose, is_inner, limit: None if is_inner else line,
    )
    fit = partial(srf.harfe, n_nonzero_coefs=5, alpha=1e-4, n_components=100)
    call = {
        "calibrated": lambda **more: (
            srf.calibrated(partial(fit, loss="logistic"), X, LABELS, cv=2, **more).coef
        ),
        "intervals": lambda **more: srf.intervals(fit, X, Y, method="cv+", cv=2, **more).predict(X)[
            0
        ],
        "cross_validate": lambda **more: srf.cross_validate(fit, X, Y, {}, cv=2, **more).model.coef,
        "distill": lambda **more: (
            srf.distill(lambda X: X[:, 0] ** 2, X, n_made=50, effort=0.02, **more).coef
        ),
    }[name]
    shown = call(verbose=True, rng=0)
    assert len(set(shares)) > 8 and shares == sorted(shares)
    np.testing.assert_array_equal(shown, call(verbose=False, rng=0))


@pytest.mark.slow
def test_a_fit_in_a_callback_is_no_part_of_the_work(caplog):
    caplog.set_level("INFO", "sparserf")
    seen = []

    def callback(info):
        FITS["harfe"]()
        seen.append(info.progress)

    FITS["mfga"](callback=callback, verbose=True)
    alone = []
    FITS["mfga"](callback=lambda info: alone.append(info.progress), verbose=True)
    assert seen == alone


def test_fits_of_several_threads_take_turns(terminal):
    with _display._screen:  # as while another thread shows its line
        FITS["mfga"]()
    assert not drawn(terminal)
    FITS["mfga"]()
    assert drawn(terminal) and not _display._screen.locked()


def test_a_callback_that_raises_gives_the_screen_back(terminal):
    with pytest.raises(ZeroDivisionError):
        FITS["mfga"](callback=lambda info: 1 / 0)
    assert not _display._screen.locked() and rows_of(terminal.getvalue()) == [""]


def test_bars_of_the_user_are_not_drawn_over(terminal, monkeypatch):
    bars = SimpleNamespace(tqdm=SimpleNamespace(_instances={"a bar"}))
    monkeypatch.setitem(sys.modules, "tqdm", bars)
    FITS["mfga"]()
    assert not drawn(terminal)
    bars.tqdm._instances.clear()
    FITS["mfga"]()
    assert drawn(terminal)


@pytest.mark.parametrize("verbose", [None, True])
def test_a_notebook_shows_progress_as_an_output_of_the_cell(verbose, monkeypatch, capsys):
    outputs = []

    def display(data, raw, display_id):
        outputs.append(data)
        return SimpleNamespace(update=lambda data, raw: outputs.append(data))

    monkeypatch.setattr(_display, "AUTO_DELAY", 0.0)
    shell = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=True), display=SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shell.display)
    FITS["mfga"](verbose=verbose)
    assert outputs[0]["text/plain"].startswith("mfga: ") and "% done" in outputs[0]["text/html"]
    assert (
        outputs[-1]["text/plain"].startswith("mfga: 100 % done" if verbose else "")
        and not capsys.readouterr().err
    )
    assert (outputs[-1]["text/html"] == "") is (verbose is None)


@pytest.mark.filterwarnings("ignore::sparserf.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_showing_progress_computes_nothing_more(name, terminal, monkeypatch):
    """A line of progress asks for nothing that a fit would not compute without it, such as a
    duality gap."""
    asked = []
    Progress = fit_progress.Progress
    real = Progress.info
    monkeypatch.setattr(Progress, "info", lambda *a, **k: asked.append(name) or real(*a, **k))
    counts = []
    for verbose in (False, None, True):
        asked.clear()
        FITS[name](verbose=verbose)
        counts.append(len(asked))
    assert drawn(terminal) and counts[0] == counts[1] == counts[2]


def test_verbose_changes_nothing_and_is_checked():
    for verbose in (True, False):
        assert np.array_equal(FITS["mfga"](verbose=verbose).coef, FITS["mfga"]().coef)
    with pytest.raises(TypeError, match="verbose must be True, False or None, got 2"):
        FITS["mfga"](verbose=2)
