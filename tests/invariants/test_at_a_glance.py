"""The invariants of the four papers at a glance, and a test that this page is complete.

Each of test_sparse_rf.py (Yen et al. 2014), test_harfe.py (Saha, Schaeffer, Tran 2022),
test_mfga.py (Shahrampour, Tarokh 2018) and test_drp.py (Zhang et al. 2013) has these, by name:

| invariant | test |
|---|---|
| objectives in plain NumPy fall from iteration to iteration | the_objective_never_rises |
| gap or error bound >= the distance to an optimum found otherwise | the_certificate_is_a_bound |
| dense = CSR = float32; any order; copies = weight | the_same_problem_in_another_form |
| what y times t does | units_of_the_target |
| what features times t do | units_of_features |

Beside them each has what the theorems of its paper say, at their own constants:

| | in the paper | what is tested |
|---|---|---|
| S1 | Theorem 1, every draw | a round gains what its worst violator promises |
| S2 | Theorem 1 | a round gains so much on average |
| S3 | Theorem 2 | the rate of convergence to any reference over a finite dictionary |
| S4 | Corollaries 1, 2 | that to the kernel machine, in batches, also of draws that learn |
| S5 | Corollary 3 | the same with high probability |
| S6 | problem (8) | duality gap, optimality, the largest penalty, continuity in the penalty |
| S7 | Cotter et al. 2011 | Taylor features come as near to the kernel as they must |
| S8 | proof of Theorem 2 | a bound on F(w) - F(w_ref) for every w_ref from what violates |
| H1 | Algorithm 1 | c~ = c on the support; at rest no exchange of terms pays |
| H2 | Foucart 2011 | small steps descend and come to rest; large ones return the best point |
| H3 | Theorem 3.1 | the error contracts |
| H4 | proof of Theorem 3.1 | the penalty shrinks restricted isometry constants |
| H5 | Foucart 2011, Cor. 3.6 | the support is exact after as many steps as is said |
| H6 | problem (6) | of all terms ridge regression; signs of columns |
| M1 | Algorithm 1 | a round gains what its largest gradient promises |
| M2 | Theorem 3 | the distance to any model of k terms shrinks, attained |
| M3 | section 2.2 | orthogonal matching pursuit; supports are nested |
| M4 | Lemma 1 | Rademacher complexity |
| D1 | Theorem 2 | one step |
| D2 | Theorem 5 | T steps |
| D3 | Theorem 1 | the solution of the projected problem |
| D4 | Theorem 4 | the naive solution on the span of the rows |
| D5 | Theorem 3 | the naive solution fails |
| D6 | Theorem 6 | full rank |
| D7 | Theorem 2 | how many projections |
| D8 | Theorem 2 | an orthogonal projection |
| D9 | (15) | the closed form of the squared loss |
| D10 | Proposition 1 | strong duality |
| D11 | problem (1) | the same problem in another form |

Elsewhere: the errors of HARFE's Table 2 in algorithms/test_harfe.py; kernels of the maps in
features/test_maps.py; the bound of DRP in 40 digits in linear/test_rounding.py; features whose
coefficients must be at least 0, classes fitted together, and other losses in
algorithms/test_nonnegative.py, algorithms/test_multinomial.py and losses/test_fits_by_loss.py;
weights and copies for every function in algorithms/test_sample_weight.py.
"""

import re

import pytest

from . import test_drp, test_harfe, test_mfga, test_sparse_rf

LABEL = r"\b[SHMD]\d+\b"


@pytest.mark.every_case
@pytest.mark.parametrize("file", [test_sparse_rf, test_harfe, test_mfga, test_drp])
def test_this_page_is_complete(file):
    """Each file has the invariants of all and those of its own, and no other theorem is named
    there."""
    tests = {name: test.__doc__ for name, test in vars(file).items() if name.startswith("test_")}
    for name in re.findall(r"^\|[^|]+\| (\w+_\w+) \|$", __doc__, re.M):
        assert [test for test in tests if test.endswith(name)], name
    letter = {test_sparse_rf: "S", test_harfe: "H", test_mfga: "M", test_drp: "D"}[file]
    tested = {label for words in tests.values() for label in re.findall(LABEL, words)}
    assert tested == {label for label in re.findall(LABEL, __doc__) if label[0] == letter}
    for name, words in tests.items():
        assert re.match(rf"{LABEL}|Problem \(\d\)", words), name
