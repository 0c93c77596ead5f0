"""Figures of single columns and pairs are those of pandas, repeated rows for weights."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.evaluation.compared import compare
from counterpoise.evaluation.statistics import cell_shares, column_statistics, correlations
from tests.evaluation.evaluations import SCHEMA, made, people


@pytest.fixture(scope="module")
def compared():
    release = made()
    whole = np.random.default_rng(0).integers(0, 4, len(release.table))
    return compare(release.reweighted(whole.astype(float)), people(300, 0))


@pytest.fixture(scope="module")
def repeated():
    release = made()
    whole = np.random.default_rng(0).integers(0, 4, len(release.table))
    return release.table.loc[release.table.index.repeat(whole)]


def test_means_deviations_quantiles_and_nulls(compared, repeated):
    found = column_statistics(compared).set_index(["column", "measure"])
    dose, tables = "dose", {"private": people(300, 0), "weighted": repeated}
    for side, table in tables.items():
        values = table[dose].astype(float)
        assert found.loc[(dose, "mean"), side] == pytest.approx(values.mean())
        deviation = found.loc[(dose, "standard deviation"), side]
        assert deviation == pytest.approx(values.std(ddof=0))
        assert found.loc[(dose, "null"), side] == pytest.approx(values.isna().mean())
        expected = np.quantile(values.dropna(), 0.25, method="inverted_cdf")
        assert found.loc[(dose, "25% quantile"), side] == pytest.approx(expected)
    seen = found.loc[("seen", "mean"), "private"]
    days = (people(300, 0)["seen"] - pd.Timestamp("1970-01-01")).dt.days
    assert seen == pytest.approx(days.mean())


def test_shares_of_categories_and_which_are_rare(compared, repeated):
    found = cell_shares(compared).set_index(["column", "cell"])
    assert found.loc[("ward", "surgery"), "weighted"] == pytest.approx(
        (repeated["ward"] == "surgery").mean()
    )
    assert found.loc[("ward", "closed"), "private"] == 0
    assert found.loc["ward", "rare"].to_dict() == {
        "surgery": False,
        "medicine": False,
        "closed": True,
    }
    sums = found.groupby(level=0)[["private", "unweighted", "weighted"]].sum()
    assert np.allclose(sums, 1)


def test_numbers_are_cut_into_groups_of_equal_shares_with_frequent_values_apart():
    rows = people(300, 0)
    rows.loc[:150, "dose"] = 0.0
    compared = compare(made(), rows)
    cells = cell_shares(compared).query("column == 'dose'").set_index("cell")["private"]
    assert cells.loc["0"] == pytest.approx((rows["dose"] == 0).mean())
    others = cells.drop(["0", "null"])
    assert len(others) == 10
    assert others.max() < 1.5 * others.mean()
    ages = cell_shares(compared).query("column == 'age'")["private"]
    assert len(ages) == 10
    assert ages.between(0.05, 0.15).all()


def test_correlations_are_those_of_pandas_and_associations_of_relations(compared, repeated):
    found = correlations(compared).set_index(["left", "right"])
    rows = people(300, 0)
    assert found.loc[("age", "dose"), "private"] == pytest.approx(rows["age"].corr(rows["dose"]))
    expected = repeated["age"].astype(float).corr(repeated["ill"].astype(float))
    assert found.loc[("age", "ill"), "weighted"] == pytest.approx(expected)
    assert found.loc[("age", "ward"), "measure"] == "Cramér's V"
    assert found.loc[("age", "ill"), "measure"] == "correlation"
    assert len(found) == len(SCHEMA) * (len(SCHEMA) - 1) // 2
