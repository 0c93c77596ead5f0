"""The confidential page holds the figures of the evaluation, in full, and loads nothing."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from counterpoise.evaluation.attacks.finding import NEEDS_HOLDOUT, NO_HOLDOUT
from counterpoise.evaluation.evaluate import ATTACK_COLUMNS
from counterpoise.evaluation.page import confidential_page
from tests.evaluation.evaluations import evaluated

ATTACKS = pd.DataFrame(
    [
        ("membership", "advantage", "table", 0.02, 0.0, 0.05, 0.0, 0.0, 0.04, "Nothing <b>."),
        ("linkability", "risk", "table and weights", 0.1, 0.05, 0.15, *[float("nan")] * 3, "So."),
    ],
    columns=list(ATTACK_COLUMNS),
)


@pytest.fixture(scope="module")
def page():
    return confidential_page(replace(evaluated(), attacks=ATTACKS))


def test_what_needs_a_holdout_is_said_once(page):
    mark = "There is no hold-out"
    says = ["Nothing." + NO_HOLDOUT, NEEDS_HOLDOUT]
    # The first is above its baseline, and so stands in the summary as well.
    attacks = ATTACKS.assign(says=says, low=[0.05, float("nan")], value=[0.1, float("nan")])
    without = replace(
        evaluated(), attacks=attacks, about=evaluated().about | {"holdout_rows": None}
    )
    for shown in (str(without), confidential_page(without)):
        assert shown.lower().count("without a hold-out these baselines know nothing") == 1
        assert "Nothing." in shown
        assert mark not in shown
        assert "no hold-out was given" not in shown
    assert "Not available without a hold-out." in confidential_page(without)
    assert "without a hold-out" not in page


def lines(page, table):
    """The figures of a table of the page, by the key of each line."""
    [content] = re.findall(rf'<table[^>]* id="{table}">(.*?)</table>', page, re.S)
    return {
        key: [float(value) for value in re.findall(r'data-value="([^"]*)"', line)]
        for key, line in re.findall(r'<tr data-key="([^"]*)">(.*?)</tr>', content, re.S)
    }


def test_what_is_worst_comes_first_with_its_figures(page):
    for kind in ("columns", "pairs"):
        found = lines(page, f"worst-{kind}")
        worst = evaluated().worst(kind)
        assert list(found) == worst["columns"].tolist()
        expected = worst[["unweighted", "weighted", "floor"]].to_numpy().tolist()
        assert list(found.values()) == expected
    assert page.index('id="misleads"') < page.index('id="attacks"') < page.index('id="distances"')


def test_distances_models_and_statistics_are_those_of_the_frames(page):
    distances = evaluated().distances
    found = lines(page, "all-distances")
    assert list(found) == distances["measure"].tolist()
    assert [values[1] for values in found.values()] == distances["weighted"].tolist()
    statistics = evaluated().statistics
    shown = lines(page, "statistics")
    assert [values[0] for values in shown.values()] == pytest.approx(
        statistics["private"].tolist(), nan_ok=True
    )
    assert len(lines(page, "utility")) == len(evaluated().utility)


def test_attacks_are_in_plain_words_with_their_baselines_and_escaped(page):
    assert "Nothing &lt;b&gt;." in page
    assert "Nothing <b>" not in page
    assert 'data-key="linkability/risk/table and weights"' in page


def test_attacks_that_do_better_than_their_baselines_are_told_first():
    spoiled = ATTACKS.assign(low=[0.5, 0.05], baseline_high=[0.2, float("nan")], says="Known.")
    found = replace(evaluated(), attacks=spoiled)
    assert found.exceeding["attack"].tolist() == ["membership"]
    page = confidential_page(found)
    assert "1 of 2 figures are above their baselines" in page
    assert "1 of 2 figures are above their baselines" in str(found)
    assert 'class="box verdict caution"' in page
    assert 'class="box verdict fine"' in confidential_page(replace(found, attacks=ATTACKS))
    alone = replace(found, about=found.about | {"holdout_rows": None})
    assert "need not be anybody" in confidential_page(alone)
    assert 'class="box verdict caution"' not in confidential_page(alone)


def test_nothing_is_loaded_and_nothing_runs(page):
    assert re.findall(r"<script|@import|url\(|<img|<link|https?://", page) == []
    assert "default-src 'none'" in page


def test_a_table_of_one_column_has_a_page():
    found = evaluated()
    alone = replace(
        found,
        marginals=found.marginals.query("degree == 1").head(1),
        correlations=found.correlations.head(0),
        utility=found.utility.head(0),
        coefficients=found.coefficients.head(0),
        shares=found.shares[found.shares["column"] == found.marginals["columns"].iloc[0]],
    )
    page = confidential_page(alone)
    assert 'id="models"' not in page
    assert 'id="worst-columns"' in page
