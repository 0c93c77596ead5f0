"""The cards of columns: what is drawn of a column whose bounds are generous."""

import numpy as np
import pandas as pd

import counterpoise as cp
from counterpoise.report.columns import as_drawn, column_card


def test_a_column_with_a_shape_is_drawn_where_its_rows_are():
    values = np.random.default_rng(0).lognormal(9, 0.6, 5000)
    schema = cp.Schema([cp.Column.continuous("pay", 0, 1e8)])
    table = pd.DataFrame({"pay": values})
    made = cp.release(table, schema, 2.0, 1e-9, replicates=5, seed=1, progress=False)
    drawn = as_drawn(made.schema["pay"])
    held = np.histogram(made.table["pay"], drawn.edges)[0] / len(made.table)
    assert held.max() < 0.15 and 15 < drawn.cells < 80
    chart = str(column_card(made, made.schema["pay"])["chart"])
    assert "100,000,000" not in chart and "e-324" not in chart
