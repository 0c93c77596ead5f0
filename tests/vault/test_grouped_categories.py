"""Long lists of categories: counted with the fine cells, and coded by what stands clear."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Vault, most_codes

NAMES = [f"c{place}" for place in range(1000)]


def table(rows=5000, seed=0):
    generator = np.random.default_rng(seed)
    parts = 1 / np.arange(1.0, 1001)
    places = generator.choice(1000, rows, p=parts / parts.sum())
    city = pd.Series(NAMES).iloc[places].reset_index(drop=True)
    return pd.DataFrame(
        {
            "city": city.mask(generator.random(rows) < 0.5),
            "grade": generator.binomial(199, 0.4, rows),
            "ward": generator.choice(["a", "b"], rows),
        }
    )


SCHEMA = Schema(
    [
        Column.categorical("city", NAMES, other="c999", nullable=True),
        Column.ordinal("grade", range(200)),
        Column.categorical("ward", ["a", "b"]),
    ]
)


def chosen(private, budget, schema=SCHEMA, **options):
    with Vault(private, schema, budget, seed=1, **options) as vault:
        part = vault.budget.whole.part
        found = vault.choose_cells(part(0.2), part(0.05))
        return found, vault.ledger.spends


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_stands_clear_has_a_code_and_the_rest_share_one(neighbours, delta):
    budget = Budget(4.0, delta, neighbours)
    found, spends = chosen(table(), budget)
    grouping = found["city"].grouping
    assert 3 <= found["city"].cells <= most_codes(budget, 3, 5000)
    assert grouping.codes[0] < found["city"].cells - 1
    assert grouping.codes.count(found["city"].cells - 1) > 900
    assert found["ward"].grouping is None
    # A Zipf law of a thousand has 13% in its first; the nulls, half of the rows, are no part of it.
    assert grouping.shares[0] == pytest.approx(0.134, abs=0.03)
    assert min(grouping.shares) >= 0
    assert max(grouping.deviations) < 0.05
    assert [spend.query for spend in spends][-1] == "fine cells of city, grade"


def test_ordered_categories_are_grouped_with_their_neighbours():
    found, _ = chosen(table(), Budget(4.0, 1e-6))
    column = found["grade"]
    assert list(column.grouping.codes) == sorted(column.grouping.codes)
    shares = np.array(column.grouping.shares)
    assert shares @ np.arange(200) == pytest.approx(79.6, abs=4)
    assert np.bincount(column.grouping.codes, shares).max() < 0.3


def test_duckdb_groups_as_memory_does(tmp_path):
    table().to_parquet(tmp_path / "rows.parquet")
    budget = Budget(4.0, 1e-6)
    out_of_core, _ = chosen(tmp_path / "rows.parquet", budget, storage="duckdb")
    assert out_of_core == chosen(table(), budget)[0]


def test_counts_go_on_in_groups_alike_in_memory_and_in_duckdb(tmp_path):
    table().to_parquet(tmp_path / "rows.parquet")
    counts = []
    for private, options in ((table(), {}), (tmp_path / "rows.parquet", {"storage": "duckdb"})):
        with Vault(private, SCHEMA, Budget(4.0, 1e-6), seed=1, **options) as vault:
            part = vault.budget.whole.part
            schema = vault.choose_cells(part(0.2), part(0.05))
            [pair] = vault.counts([("city", "ward")], part(0.5))
            assert pair.values.shape == schema.shape(("city", "ward"))
            counts.append(pair.values)
    assert (counts[0] == counts[1]).all()


def test_lists_that_relations_can_be_seen_in_keep_their_codes():
    schema = SCHEMA.replace(Column.categorical("city", NAMES[:32], other="c0", nullable=True))
    found, spends = chosen(table(), Budget(4.0, 1e-6), schema)
    assert found["city"].grouping is None
    assert spends[-1].query == "fine cells of grade"


def test_too_few_rows_for_a_histogram_keep_every_code():
    found, spends = chosen(table(60), Budget(0.1, 1e-6))
    assert found == SCHEMA
    assert [spend.query for spend in spends] == ["number of rows"]
