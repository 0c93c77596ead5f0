"""Charts: bars as long as the shares say, on scales that hold every weight."""

import re

import numpy as np
import pytest

from counterpoise.report.charts import budget_bar, categories, heat_map, weights_histogram
from counterpoise.report.labels import short_names, text_width

ALIKE = [
    *("expenditure_on_medicines_2019", "expenditure_on_medicines_2020"),
    *("expenditure_2019_on_hospital_care", "expenditure_2020_on_hospital_care"),
    *("MAXIMUM_TEMPERATURE_MORNING", "MAXIMUM_TEMPERATURE_EVENING"),
    *("blood_pressure_first_visit_a", "blood_pressure_second_visit_a", "ward"),
]


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


@pytest.mark.parametrize("room", [5.0, 8.5, 12.0])
def test_long_names_are_cut_where_they_are_alike(room):
    shown = short_names(ALIKE, room)
    assert len(set(shown)) == len(ALIKE)
    assert shown[-1] == "ward"
    assert max(map(text_width, shown)) <= room + 1e-9


def test_names_in_charts_that_look_alike_say_where_they_differ():
    count = len(ALIKE)
    shares = np.full(count, 1 / count)
    for chart in (heat_map(np.eye(count), ALIKE, "pairs"), categories(shares, shares, ALIKE)):
        shown = re.findall(r'<text x="0(?:\.0)?"[^>]*>(?:\d+ )?([^<]+)</text>', chart)
        assert len(set(shown)) == count
        assert [year for name in shown for year in re.findall("20..", name)] == [
            *("2019", "2020"),
            *("2019", "2020"),
        ]
