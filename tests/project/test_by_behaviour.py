"""Tests call what users call. Those that set, replace or read what is within the library are named
here, with the reason: a new one finds its place in a list, or does without."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
REASONS = {
    "a limit of sizes or of work is made small, so that few rows reach it": """
        algorithms/test_fewer_terms.py algorithms/test_fits_end.py algorithms/test_prune.py
        base/test_calls.py base/test_copies.py base/test_html.py calculus/test_derivatives.py
        columns/test_encoder.py columns/test_fits_of_tables.py columns/test_made_rows.py
        columns/test_table.py core/test_term_values.py explain/test_shapley.py
        features/test_thresholds.py linear/test_rounding.py rows/test_array_block.py
        rows/test_gram_with_boxes.py rows/test_memory_layout.py rows/test_rows_in_memory.py
        solvers/test_small_dense_problems.py sums/test_sums.py test_extreme_input.py
    """,
    "passes, calls or multiplications are counted, which no result tells": """
        algorithms/test_all_rows.py algorithms/test_default_promises.py algorithms/test_paths.py
        algorithms/test_polish.py columns/test_clocks.py explain/test_importances.py
        features/test_rules.py rows/test_number_of_passes.py
        solvers/test_joint_steps_and_greedy_fits.py solvers/test_problems_on_rows.py
        validation/test_cross_validation.py validation/test_intervals.py
    """,
    "two ways to the same numbers are compared, of which a call takes one": """
        algorithms/test_drp.py algorithms/test_sample_weight.py algorithms/test_sparse_rf.py
        invariants/test_sparse_rf.py test_plain.py
    """,
    "a part is checked against a formula that its results alone do not show": """
        algorithms/test_fewer_columns.py core/test_boxes.py core/test_fold_path.py
        features/test_learning_dictionary.py features/test_projections.py proof/test_proof.py
    """,
    "time passes, or something fails, as it does for no call of a test": """
        algorithms/test_time_limit.py base/test_convergence_warnings.py conftest.py
    """,
    "a screen, a device, or a library that is not there": """
        base/test_progress.py base/test_versions.py rows/homes.py rows/test_same_fit_anywhere.py
        test_plot.py
    """,
    "threads and files are the same objects, or are closed": "rows/test_chunks.py",
    "a link that the library does not have": "export/test_export.py",
    "tools of the repository, whose results are files": """
        mutants.py project/test_docs.py project/test_experiments.py sklearn/test_sklearn.py
    """,
}
# objects of which a test, or Python, has the names
OWN = "self", "cls", "sparserf", "srf"


def looks_within(path):
    """Return whether a file replaces something of another module, or reads what is private."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "monkeypatch.setattr",
            "monkeypatch.setitem",
            "patch.object",
        ):
            return True
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in OWN:
            name = node.attr
            if name.startswith("_") and not name.startswith(("__", "_repr_", "_replace")):
                return True
    return False


def test_tests_that_look_within_are_named_with_a_reason():
    named = [name for names in REASONS.values() for name in names.split()]
    found = [str(each.relative_to(TESTS)) for each in TESTS.rglob("*.py") if looks_within(each)]
    assert sorted(named) == sorted(found)
