"""Each language has a way to write each operation of expressions, and writes what it computes."""

import inspect

import numpy as np
import pytest

from sparserf._base import expressions
from sparserf.export import c, jax, latex, python, sql, sympy, text
from sparserf.features.activations import ACTIVATIONS

FUNCTIONS = {
    name for name, _ in inspect.getmembers(expressions, inspect.isfunction) if name[0] != "_"
}
OPERATIONS = FUNCTIONS - {"dataclass", "made", "expanded", "is_matrix"} | {
    "add",
    "multiply",
    "negative",
}
OF_TERMS = {"over", "seen", "parameter"}
OF_CELLS = {"cell", "between", "angle", "units", "reached", "filled", "asked", "table"}
# Terms in arrays have no variables of encodings.
ONE_BY_ONE, IN_ARRAYS = OPERATIONS - OF_TERMS, OPERATIONS - {"encoding", "envelope", "raised"}


def writes(printer, operation):
    """Return whether a class writes an operation, by a template or a method."""
    return operation in getattr(printer, "templates", {}) or hasattr(printer, operation)


@pytest.mark.parametrize(
    "printer", [python.PythonPrinter, sympy.SympyPrinter, sql.SqlPrinter, text.Text, latex.Latex]
)
def test_languages_that_write_terms_one_by_one(printer):
    written_with_units = {"between"} if printer is sql.SqlPrinter else set()
    assert {
        operation for operation in ONE_BY_ONE if not writes(printer, operation)
    } == written_with_units


@pytest.mark.parametrize("printer", [jax.JaxPrinter, c.CPrinter])
def test_languages_that_write_arrays(printer):
    assert {operation for operation in IN_ARRAYS if not writes(printer, operation)} == set()


def test_onnx():
    pytest.importorskip("onnx")
    from sparserf.export import onnx

    assert {
        operation for operation in OF_CELLS if not hasattr(onnx.EncodingNodes, operation)
    } == set()
    of_terms = IN_ARRAYS - OF_CELLS - set(onnx.ROUNDED)
    assert {operation for operation in of_terms if not writes(onnx.TermNodes, operation)} == set()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_expressions(name):
    """The Python of sigma(z) computes sigma(z)."""
    sigma, z = ACTIVATIONS[name], np.linspace(-3, 3, 13)
    printer = python.PythonPrinter.__new__(python.PythonPrinter)
    printer.digits, printer.name = None, lambda v: "z"
    names = {"np": np, "z": z}
    exec(python.HELPERS, names)
    np.testing.assert_allclose(
        eval(printer(sigma.expression(expressions.encoding(0))), names), sigma.value(z), atol=1e-15
    )
