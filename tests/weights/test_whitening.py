"""White coordinates are of what the rows that tell of the covariance have seen."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.weights import whitening
from counterpoise.weights.row_blocks import FeatureRows
from counterpoise.weights.standardise import spread
from counterpoise.weights.whitening import Whitening, least_loadings

ROWS = 3000


def feature_rows(values: np.ndarray) -> FeatureRows:
    """Rows with these features."""
    schema = Schema([Column.integer("place", 0, ROWS - 1, bins=ROWS)])
    places = schema.encode(pd.DataFrame({"place": np.arange(ROWS)}))
    single = values.astype(np.float32)
    return FeatureRows(places, lambda some: single[some.codes[:, 0]], values.shape[1])


def test_a_feature_whose_rows_are_missing_from_the_part_is_not_matched(monkeypatch):
    """Seeded: all that the part sees of the second feature is a ripple, taken for its spread."""
    monkeypatch.setattr(whitening, "PART_ROWS", 500)
    generator = np.random.default_rng(0)
    values = generator.normal(size=(ROWS, 3))
    unseen = np.setdiff1d(np.arange(ROWS), spread(ROWS, 500))[:40]
    values[:, 1] = 1e-3 * generator.normal(size=ROWS)
    values[unseen, 1] = 1.0
    rows = feature_rows(values)
    found = Whitening.over(rows, np.array([0, 1, 2]), np.zeros(3))
    assert found.blocks.tolist() == [0, 2]
    white = (values - found.centre) @ found.directions
    assert white.var(axis=0) == pytest.approx(np.ones(2), rel=0.2)


def test_the_means_and_variances_of_features_are_those_of_all_rows():
    values = np.random.default_rng(1).normal(2.0, 3.0, size=(ROWS, 4))
    rows = feature_rows(values)
    means, variances = rows.means_and_variances()
    assert means == pytest.approx(values.mean(axis=0), rel=1e-5)
    assert variances == pytest.approx(values.var(axis=0), rel=1e-5)
    assert means == pytest.approx(rows.held().means(), rel=1e-6)


def test_loadings_lead_back_to_the_features_and_to_those_that_others_explain():
    generator = np.random.default_rng(2)
    values = generator.normal(size=(ROWS, 3)) @ generator.normal(size=(3, 3))
    values = np.column_stack([values, values[:, 0] - 2 * values[:, 2]])
    found = Whitening.over(feature_rows(values), np.arange(4), np.zeros(4))
    assert found.blocks.tolist() == [0, 1, 2]
    white = (values - found.centre) @ found.directions
    assert white @ found.loadings.T == pytest.approx(values - found.centre, abs=1e-3)
    assert least_loadings(found.directions)[:3] == pytest.approx(found.loadings[:3], rel=1e-3)
