"""Every argument of a public function is in one of the objects that read its call, and no internal
list is long."""

import ast
from dataclasses import fields
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import sparserf as srf
from sparserf.algorithms.arguments import ColumnSetting, RowSetting
from sparserf.algorithms.distill import DistillOptions
from sparserf.algorithms.drp import DRPOptions
from sparserf.algorithms.harfe_fit import HarfeOptions
from sparserf.algorithms.mfga import MfgaOptions
from sparserf.algorithms.sparse_rf.options import ChoiceOptions, SparseRFOptions
from sparserf.baselines.kernel_machines import KernelOptions
from sparserf.baselines.random_features import RidgeOptions

LIMITS = {"lower", "upper"}  # `FitOptions.limits`
MOST_PARAMETERS = 8
# For each function the objects that take its arguments, and those that it takes itself.
READ = {
    srf.harfe: ([HarfeOptions], {"n_nonzero_coefs", "time_limit"}),
    srf.harfe_path: ([HarfeOptions], {"n_nonzero_coefs", "n_models", "time_limit"}),
    srf.mfga: ([MfgaOptions], {"time_limit"}),
    srf.mfga_path: ([MfgaOptions], {"time_limit"}),
    srf.sparse_rf: ([SparseRFOptions, ChoiceOptions], {"alpha", "time_limit"}),
    srf.sparse_rf_path: (
        [SparseRFOptions],
        {"alphas", "n_alphas", "alpha_min_ratio", "time_limit"},
    ),
    srf.drp: ([DRPOptions], {"alpha"}),
    srf.drp_path: ([DRPOptions], {"alphas"}),
    srf.distill: (
        [DistillOptions],
        {"teacher", "classes", "time_limit", "sample_weight", "groups"},
    ),
    srf.baselines.kernel_ridge: ([KernelOptions], set()),
    srf.baselines.kernel_svm: ([KernelOptions], set()),
    srf.baselines.rks: ([RidgeOptions], set()),
    srf.baselines.eerf: ([RidgeOptions], set()),
    srf.baselines.lkrf: ([RidgeOptions], {"selection", "rho"}),
}


@pytest.mark.parametrize("function", READ, ids=lambda function: function.__name__)
def test_every_argument_is_read(function):
    """An object takes arguments by the names of its fields: one of another name would never get its
    value."""
    classes, own = READ[function]
    taken = [field.name for each in (ColumnSetting, RowSetting, *classes) for field in fields(each)]
    assert set(signature(function).parameters) - {"X", "y", "verbose"} <= {*taken, *own, *LIMITS}


def test_what_a_penalty_leaves_without_meaning_is_what_the_user_left_out():
    parameters = signature(srf.sparse_rf).parameters
    assert all(field.default == parameters[field.name].default for field in fields(ChoiceOptions))


def test_checked_fields_hold_what_their_checks_return():
    options = HarfeOptions(alpha=1, max_iter=np.int32(7))
    assert type(options.alpha) is float and type(options.max_iter) is int
    assert isinstance(options.rng, np.random.Generator) and options.callback is None
    assert ColumnSetting(scale=None).scale is None  # the default, which is not checked
    for wrong in ({"alpha": 0}, {"alpha": 1, "start": "there"}, {"alpha": 1, "callback": 3}):
        name = list(wrong)[-1]
        with pytest.raises((ValueError, TypeError), match=name):
            HarfeOptions(**wrong)
    with pytest.raises(TypeError, match="max_iter must be"):
        HarfeOptions(alpha=1, max_iter=None)  # None is not its default


@pytest.mark.slow
def test_internal_lists_of_parameters_are_short():
    public = {*srf.__all__, *srf.baselines.__all__}
    for path in Path(srf.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name not in public:
                names = [
                    each.arg
                    for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                ]
                assert len(names) - (names[:1] in (["self"], ["cls"])) <= MOST_PARAMETERS, (
                    path.name,
                    node.name,
                )
