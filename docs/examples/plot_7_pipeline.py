"""
In a pipeline of scikit-learn
=============================

This example predicts how many bicycles are hired in an hour, from data that are made here. A step
of the pipeline adds the columns that the table lacks. The model is an estimator like any other: its
parameters are searched, it is cross-validated in the order of time, and compared with trees.
"""

# %%
# The table has times, words and empty cells.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import (
    GridSearchCV,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sparserf.sklearn import SparseRFRegressor

rng = np.random.default_rng(0)
n = 1200
time = pd.date_range("2024-03-01", periods=n, freq="h")
sky = rng.choice(["clear", "cloudy", "rain"], n, p=[0.5, 0.3, 0.2])
warmth = 12 + 6 * np.sin((time.hour - 9) / 24 * 2 * np.pi) + rng.normal(0, 2, n)
rush = np.exp(-((time.hour - 8) ** 2) / 4) + np.exp(
    -((time.hour - 17) ** 2) / 6
)
hired = (20 + 6 * warmth + 150 * rush * (time.day_of_week < 5)) * np.where(
    sky == "rain", 0.4, 1
) + rng.normal(0, 12, n)
table = pd.DataFrame(
    {
        "time": time,
        "sky": sky,
        "temperature": np.where(rng.random(n) < 0.1, np.nan, warmth),
    }
)

# %%
# The model takes dates as they are. Here the first step makes of a date what repeats: the hour, and
# whether it is a weekend. Words and empty cells go in as they are, so that there is no encoder and
# no imputer.


def parts_of_time(table):
    time = table["time"].dt
    return table.drop(columns="time").assign(
        hour=time.hour, weekend=time.day_of_week > 4
    )


pipeline = make_pipeline(
    FunctionTransformer(parts_of_time), SparseRFRegressor(random_state=0)
)

# %% In a pipeline the name of a parameter begins with the name of its step. Every fold is later
# than the rows that are fitted to.

later = TimeSeriesSplit(n_splits=3, test_size=168)
grid = {"sparserfregressor__max_order": [1, 2, None]}
search = GridSearchCV(
    pipeline, grid, cv=later, scoring="neg_root_mean_squared_error"
).fit(table, hired)
for order, score in zip(
    grid["sparserfregressor__max_order"],
    -search.cv_results_["mean_test_score"],
    strict=True,
):
    print(
        f"terms of at most {order or 'all'} inputs: an error of {score:.1f} bicycles in the weeks "
        "that follow"
    )

# %%
# The same pipeline with trees, on the same weeks:

trees = make_pipeline(
    FunctionTransformer(parts_of_time),
    HistGradientBoostingRegressor(categorical_features="from_dtype"),
)
as_categories = table.assign(sky=table["sky"].astype("category"))
score = -cross_val_score(
    trees, as_categories, hired, cv=later, scoring="neg_root_mean_squared_error"
).mean()
print(f"trees: {score:.1f}")

# %% The estimator keeps the model of the library as ``model_``, which has all methods of a
# ``SparseModel``.

model = search.best_estimator_[-1].model_
print(model.summary(parts_of_time(table), n_terms=0, rng=0))

week = slice(-168, None)
fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
ax.plot(table["time"][week], hired[week], ".", color="gray", label="hired")
ax.plot(
    table["time"][week],
    search.predict(table[week]),
    label="the model, which knows this week",
)
ax.legend(frameon=False)
