"""How close a synthetic table of integer codes is to the real one, and how useful.

The measures of `counterpoise.evaluation`, unweighted, for tables that other libraries made and that
come as arrays of codes: the total variation distance of k-way marginals, averaged over all sets
of k columns, and the ROC-AUC on held-out real rows of a classifier trained on synthetic rows.
Both look at the exact real rows: they are for public benchmark data and spend no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from counterpoise import Column, Schema, evaluation
from counterpoise.schema import Coded


def marginal_error(
    synthetic: np.ndarray, real: np.ndarray, sizes: Sequence[int], degree: int
) -> float:
    """Mean total variation distance over all marginals of `degree` columns.

    `synthetic` and `real` hold one row a record and one column a variable, with the codes
    0, ..., sizes[j] - 1 in column j; they need not have the same number of rows.

    >>> table = np.array([[0, 0], [1, 1]])
    >>> marginal_error(table, table, [2, 2], 2)
    0.0
    """
    return evaluation.marginal_error(_coded(synthetic, sizes), _coded(real, sizes), degree)


def held_out_auc(
    synthetic: np.ndarray, held_out: np.ndarray, sizes: Sequence[int], target: int = -1
) -> float:
    """ROC-AUC on the real rows `held_out` of a logistic regression fitted to `synthetic`.

    Every other column is a one-hot coded feature over its whole domain; the column `target` is
    binary. The penalty is scikit-learn's default. A synthetic table with one class only teaches
    nothing: its AUC is 0.5.
    """
    target %= len(sizes)
    if sizes[target] != 2:
        raise ValueError(f"the target must be binary, not of {sizes[target]} levels")
    train, test = _coded(synthetic, sizes), _coded(held_out, sizes)
    return evaluation.linear_score(train, test, str(target), penalty=1 / len(train))


def _coded(table: np.ndarray, sizes: Sequence[int]) -> Coded:
    """Codes as a coded table, whose columns are called 0, 1, 2 and so on."""
    table = np.asarray(table, dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != len(sizes):
        raise ValueError(f"expected {len(sizes)} columns, got a table of shape {table.shape}")
    if len(table) == 0:
        raise ValueError("expected at least one row")
    if table.min() < 0 or np.any(table.max(axis=0) >= np.asarray(sizes)):
        raise ValueError("the table holds codes outside its domain")
    names = [str(column) for column in range(len(sizes))]
    columns = zip(names, sizes, strict=True)
    schema = Schema([Column.categorical(name, list(range(size))) for name, size in columns])
    return schema.encode(pd.DataFrame(table, columns=names))
