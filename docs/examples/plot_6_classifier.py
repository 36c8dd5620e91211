"""
A classifier: labels, probabilities, thresholds
===============================================

This example predicts whether a tumour is benign, from 569 samples with 30 measures of each, which
come with scikit-learn. ``loss="logistic"`` makes a classifier with probabilities of two classes,
``loss="multinomial"`` one of more.
"""

# %%
# Labels may be words. A third of the rows is kept for the test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import sparserf as srf

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
test = np.random.default_rng(0).random(len(y)) < 1 / 3

model = srf.sparse_rf(X[~test], y[~test], loss="logistic", rng=0, workers=-1)
print(f"classes {list(model.classes)}, {len(model.features)} terms")
print(
    f"{np.mean(model.predict(X[test]) != y[test]):.1%} of the test rows are wrong"
)

# %%
# How sure is it?
# ---------------
# ``predict_proba`` has a column for each class. ``predict`` takes the likelier one; where a miss
# costs more than a false alarm, use a lower threshold.

p = model.predict_proba(X[test])[:, list(model.classes).index("malignant")]
malignant = y[test] == "malignant"
thresholds = np.linspace(0.02, 0.98, 97)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, some in {"benign": ~malignant, "malignant": malignant}.items():
    left.hist(p[some], bins=np.linspace(0, 1, 21), alpha=0.6, label=name)
left.set(
    xlabel="probability of malignant",
    ylabel="test rows",
    title="What it says of each class",
)
right.plot(
    thresholds,
    [np.sum(malignant & (p <= t)) for t in thresholds],
    label="missed",
)
right.plot(
    thresholds,
    [np.sum(~malignant & (p > t)) for t in thresholds],
    label="false alarms",
)
right.set(xlabel="threshold", title="Errors by threshold")
for ax in (left, right):
    ax.legend(frameon=False)

# %%
# What it goes by
# ---------------
# With two classes f > 0 means the second one, here malignant. :doc:`/groups` says what to do when a
# class is rare.

print(model.summary(X[~test], n_terms=3, rng=0))
