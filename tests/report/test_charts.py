"""Charts: bars as long as the shares say, on scales that hold every weight."""

import re

import numpy as np
import pytest

from counterpoise.report.charts import budget_bar, categories, weights_histogram


def widths(chart):
    return [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', chart)]


def test_a_category_has_bars_in_proportion_to_its_shares():
    grey, blue, other_grey, other_blue = widths(
        categories(np.array([0.5, 0.5]), np.array([0.25, 0.75]), ["no", "yes"])
    )
    assert grey == other_grey
    assert other_blue / blue == pytest.approx(3)
    assert grey / other_blue == pytest.approx(2 / 3, rel=1e-3)


def test_the_budget_is_cut_by_what_each_stage_took():
    whole, first, second = widths(budget_bar({"a": 0.25, "b": 0.5}, whole=1.0))
    assert (first / whole, second / whole) == (0.25, 0.5)


@pytest.mark.parametrize(
    "weights",
    [
        np.array([1.0, 1.0 + 1e-6]),
        np.array([0.0, 2.0]),
        np.array([1e-300, 1e-8, 1.0, 1e6]),
        np.random.default_rng(0).lognormal(0, 1, 5000),
    ],
)
def test_every_weight_above_zero_is_counted_on_a_scale_with_few_ticks(weights):
    chart = weights_histogram(weights)
    counted = sum(int(rows.replace(",", "")) for rows in re.findall(r": ([\d,]+) rows", chart))
    assert counted == (weights > 0).sum()
    ticks = re.findall(r"<text[^>]*>([^<]+)</text>", chart)
    assert "1" in ticks
    assert len(ticks) <= 10
