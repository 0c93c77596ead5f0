"""A release with a column of thousands of categories: frequent ones related, rare ones there."""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation.plan import plan_release
from counterpoise.evaluation.points import equal_points
from counterpoise.report import release_page
from counterpoise.synthesizers.obedience import draw
from counterpoise.vault import Budget

NAMES = [f"c{place}" for place in range(2000)]
SCHEMA = cp.Schema(
    [
        cp.Column.categorical("city", NAMES, nullable=True),
        cp.Column.boolean("ill"),
        cp.Column.integer("children", 0, 6),
        cp.Column.categorical("ward", ["a", "b", "c"]),
    ],
    checks=["not (city == 'c1500' and ill)", "city != 'c0' or ward != 'c'"],
)


def private_table(rows=5000):
    generator = np.random.default_rng(0)
    parts = 1 / np.arange(1.0, 2001)
    places = generator.choice(2000, rows, p=parts / parts.sum())
    return pd.DataFrame(
        {
            "city": pd.Series(NAMES).iloc[places].mask(places % 17 == 3).to_numpy(),
            # Half of the sick live in the largest city.
            "ill": generator.random(rows) < np.where(places == 0, 0.8, 0.1),
            "children": generator.binomial(6, 0.3, rows),
            "ward": np.where(places == 0, "a", generator.choice(["a", "b", "c"], rows)),
        }
    )


@pytest.fixture(scope="module")
def release():
    return cp.release(private_table(), SCHEMA, 2.0, 1e-9, replicates=4, fine=True, seed=1)


def test_a_relation_of_a_frequent_category_is_measured(release):
    assert "fine cells of city" in [spend.query for spend in release.ledger.spends]
    truth, made = (
        frame["ill"][frame["city"] == "c0"].astype(float).mean()
        for frame in (private_table(), release.table)
    )
    assert made == pytest.approx(truth, abs=0.1)
    assert release.schema["city"].cells < 40


def test_rare_categories_are_there_and_only_listed_ones(release):
    cities = release.table["city"].dropna().astype(str)
    assert set(cities) <= set(NAMES)
    assert cities.nunique() > 700
    grouping = release.schema["city"].grouping
    rest = grouping.codes.index(release.schema["city"].cells - 1)
    assert grouping.codes.count(grouping.codes[rest]) > 1900


def test_checks_about_one_category_of_a_group_are_obeyed(release):
    assert release.schema["city"].grouping.codes[1500] == release.schema["city"].cells - 1
    assert not (release.table["ill"] & (release.table["city"] == "c1500")).any()
    assert not ((release.table["ward"] == "c") & (release.table["city"] == "c0")).any()


def test_an_analyst_sees_categories_and_not_groups(release, tmp_path):
    release.save(tmp_path / "made")
    loaded = cp.load(tmp_path / "made")
    assert loaded.schema == release.schema
    rare = loaded.table["city"].dropna().iloc[-1]
    assert loaded.proportion("city", rare).value > 0
    assert loaded.proportion("city", "c0").value == pytest.approx(0.12, abs=0.03)
    page = release_page(release)
    assert "2,000 categories" in page
    assert "codes in relations" in page
    assert "1,993 others" in page


def test_rows_are_drawn_given_one_category_of_a_group(release):
    model = release.models.synthesizer
    made = model.sample(200, seed=0, given={"city": "c1999"})
    assert set(made["city"]) == {"c1999"}
    assert model.sample(50, seed=0, given={"city": None})["city"].isna().all()
    assert len(draw(model, release.schema, 30, seed=1)) == 30


def test_a_settled_schema_is_not_paid_for_again(release):
    plan = plan_release(release.schema, Budget(2.0, 1e-9), fine=True)
    assert plan.cells_share is None
    assert plan.schema["city"].grouping == release.schema["city"].grouping


def test_rows_are_compared_by_category_though_they_share_a_code(release):
    coded = release.schema.encode(release.table)
    backwards = coded.take(np.arange(len(coded))[::-1])
    first, second = (equal_points(each, None, 100) for each in (coded, backwards))
    assert first.codes.tolist() == second.codes.tolist()
    assert first.units.tolist() == second.units.tolist()


def test_a_dry_run_knows_that_categories_will_share_codes():
    costs = {}
    for fine in (False, True):
        plan = plan_release(SCHEMA, Budget(2.0, 1e-9), fine=fine)
        costs[fine] = {stage.name: stage for stage in plan.describe(5000, 0)}
    assert costs[True]["synthesizer"].seconds < costs[False]["synthesizer"].seconds
    assert "fine histogram" in costs[True]["cells"].asks
    assert "cells" not in costs[False]
