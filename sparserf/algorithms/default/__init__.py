"""What `sparse_rf` does without a penalty: it chooses all on folds.

Where to find what:

- What is done, from the task to the model: `choose_model` in `search.py`.
- Which rows are looked at and held out: `algorithms/folds.py`; how those to hold out, and groups,
  are read from what users give: `_base/splits.py`.
- The kinds of models: `members.py`. Their paths of penalties: `paths.py`, on one fold
  `fold_path.py`, which is `l1_path.py` for terms that are drawn (`path_draws.py`) and
  `ridge_path.py` for linear functions. The values of terms on the rows of a fold: `term_values.py`.
- How much each member counts: `stack.py`. How several models become one: `mean.py`; one of fewer
  terms: `fewer_terms.py`; one for several outputs: `outputs.py`; one with weights for all rows:
  `all_rows.py`.
"""
