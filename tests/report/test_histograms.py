"""Histograms: true areas, spikes for single values, no sawtooth, axes that people read."""

import itertools
import re

import numpy as np
import pytest

from counterpoise.report.histograms import (
    MOST_BARS,
    MOST_SPIKES,
    Bars,
    find_atoms,
    groups,
    histogram,
)
from counterpoise.report.scales import axis_of


def bars_of(kind, edges, plain, weighted=None, errors=None):
    edges, plain = np.asarray(edges), np.asarray(plain, dtype=float)
    weighted = plain if weighted is None else np.asarray(weighted, dtype=float)
    errors = np.full(len(plain), np.nan) if errors is None else np.asarray(errors, dtype=float)
    return Bars(kind, edges, plain, weighted, errors, find_atoms(kind, edges))


def drawn(bars):
    """The rectangles of a chart: left, top, width (with its gap) and height."""
    chart = histogram(bars, "a chart")
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', chart)
    return [tuple(float(each) for each in rect) for rect in found], chart


def texts(chart):
    return re.findall(r"<text[^>]*>([^<]*)</text>", chart)


def test_areas_are_shares_whatever_the_widths():
    edges = [0.0, 10.0, 20.0, 60.0, 100.0]
    rects, _ = drawn(bars_of("continuous", edges, [0.1, 0.2, 0.4, 0.3]))
    areas = np.array([(width + 1) * height for _, _, width, height in rects])
    assert areas / areas.sum() == pytest.approx([0.1, 0.2, 0.4, 0.3], abs=0.005)
    widths = np.array([width + 1 for _, _, width, _ in rects])
    assert widths / widths.sum() == pytest.approx([0.1, 0.1, 0.4, 0.4], abs=0.005)


def test_areas_are_shares_on_a_logarithmic_axis_too():
    edges, shares = [0.0, 10, 100, 1000, 10_000, 1e6], [0.2, 0.3, 0.3, 0.15, 0.05]
    bars = bars_of("continuous", edges, shares)
    rects, chart = drawn(bars)
    areas = np.array([(width + 1) * height for _, _, width, height in rects])
    assert areas / areas.sum() == pytest.approx(shares, abs=0.01)
    assert {"0", "100", "10,000", "1,000,000"} <= set(texts(chart))


def test_bins_of_three_and_of_four_whole_numbers_make_no_sawtooth():
    edges = np.cumsum([0, *[3, 4] * 14, 3])  # 101 whole numbers, all as frequent
    rects, _ = drawn(bars_of("integer", edges, np.diff(edges) / edges[-1]))
    heights = [height for *_, height in rects]
    assert max(heights) - min(heights) <= 0.11  # places are written with one digit


def test_the_line_is_at_the_weighted_shares():
    bars = bars_of("continuous", [0.0, 1.0, 2.0], [0.5, 0.5], [0.0, 1.0])
    path = re.search(r'<path d="([^"]+)" fill="none"', histogram(bars, "")).group(1)
    first, second, end = (float(y) for y in re.findall(r"V([\d.]+)", path))
    assert first == end
    rects, _ = drawn(bars)
    grey = rects[1][1]
    assert end - second == pytest.approx(2 * (end - grey), abs=0.2)


def test_a_heaped_value_is_a_spike_with_its_share_beside_it():
    zero = float(np.nextafter(0, 1))
    rects, chart = drawn(bars_of("continuous", [0.0, zero, 50.0, 100.0], [0.6, 0.2, 0.2]))
    spike, bar, _ = rects
    assert spike[2] <= 3
    assert bar[2] > 100
    # The spike is cut off, so that the rest can be seen: no more than 1.6 times as high.
    assert spike[3] < 1.8 * bar[3]
    assert "60%" in texts(chart)
    assert "<title>0: 60.0% unweighted" in chart
    whole, _ = drawn(bars_of("integer", [0, 1, 52, 53], [0.3, 0.2, 0.5]))
    assert [rect[2] <= 3 for rect in whole] == [True, False, True]
    assert max(rect[0] + rect[2] for rect in whole) <= 300


def test_errors_are_drawn_around_the_weighted_share_and_end_at_the_axis():
    chart = histogram(bars_of("continuous", [0.0, 1.0, 2.0], [0.5, 0.5], errors=[0.1, 0.9]), "")
    path = re.search(r'class="error" d="([^"]+)"', chart).group(1)
    (low, high), (deep, top) = (
        (float(a), float(b)) for a, b in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", path)
    )
    assert high < low < deep
    assert deep == 97  # the foot of the chart
    assert top >= 19  # and its top
    assert "± 10.0%" in chart
    assert 'class="error"' not in histogram(bars_of("continuous", [0.0, 1.0], [1.0]), "")


@pytest.mark.parametrize(
    ("kind", "edges", "shares", "said"),
    [
        ("integer", [0, 1, 2, 3], [0.2, 0.5, 0.3], "% of rows per bar"),
        ("integer", [0, 3, 7, 10], [0.3, 0.4, 0.3], "% of rows per 2"),
        ("date", [0, 31, 59, 90], [0.3, 0.3, 0.4], "% of rows per 30 days"),
        ("continuous", [0.0, 1.0, 2.0, 100.0], [0.5, 0.4, 0.1], "% of rows per doubling"),
        ("continuous", [0.0, 10, 11, 21, 31], [0.1, 0.7, 0.1, 0.1], "% of rows per 1"),
    ],
)
def test_the_axis_says_what_heights_are_and_stays_below_a_hundred_percent(
    kind, edges, shares, said
):
    chart = histogram(bars_of(kind, edges, shares), "")
    assert texts(chart)[0] == said
    upright = re.findall(r'class="grid" d="[^"]+"/><text[^>]*>([\d.]+)<', chart)
    assert len(upright) >= 2
    assert float(upright[0]) == 0
    assert float(upright[-1]) <= 100


def test_densities_are_right_by_their_own_axis():
    # Ten percent of the rows in each of ten values: a bar of five values holds half of them.
    bars = bars_of("integer", [0, 5, 7, 10], [0.5, 0.2, 0.3])
    found = texts(histogram(bars, ""))
    assert found[0] == "% of rows per 2"
    chart = histogram(bars, "")
    rows = re.findall(r'class="grid" d="M34 ([\d.]+)H300"/><text[^>]*>([\d.]+)<', chart)
    (zero, _), (y, percent) = rows[0], rows[-1]
    top = float(re.search(r'<rect x="[\d.]+" y="([\d.]+)"', chart).group(1))
    per_unit = (float(zero) - float(y)) / float(percent)
    # 20% of the rows are in two values, wherever one looks.
    assert (float(zero) - top) / per_unit == pytest.approx(20, abs=0.2)


def test_dates_are_dates():
    days = (np.array(["2020-01-01", "2020-07-01", "2021-01-01"], "M8[D]")).astype(int)
    chart = histogram(bars_of("date", days, [0.5, 0.5]), "")
    assert "2020-01-01" in texts(chart)
    assert "2020-12-31" in texts(chart)
    assert "<title>2020-01-01 to 2020-06-30: 50.0% unweighted" in chart


def test_very_many_bins_of_a_skewed_column_are_put_together_by_place():
    edges = np.arange(100_001)
    shares = np.zeros(100_000)
    shares[[0, 5, 50, 500, 99_999]] = 0.2
    starts = groups("integer", edges, shares)
    assert len(starts) <= MOST_BARS
    assert {0, 1, 5} <= set(starts.tolist())  # fine where the axis is
    assert np.diff(starts)[-1] > 1000  # and coarse where it is not


def test_spikes_stay_by_themselves_among_very_many_bins_but_not_without_end():
    wide = np.arange(0, 4000, 20)
    edges = np.union1d(wide, wide + 1)
    shares = np.linspace(1, 2, len(edges) - 1)
    starts = groups("integer", edges, shares / shares.sum())
    assert len(starts) <= MOST_BARS + 2 * MOST_SPIKES
    kept = find_atoms("integer", edges)[starts] & (np.diff(np.append(starts, len(shares))) == 1)
    assert kept.sum() >= MOST_SPIKES


@pytest.mark.parametrize(
    ("kind", "edges", "shares", "logarithmic"),
    [
        ("integer", np.arange(0, 101, 5), np.full(20, 0.05), False),
        ("continuous", np.linspace(0, 5e6, 21), [0.9, *[0.1 / 19] * 19], True),
        ("continuous", [0, 1e3, 1e4, 1e5, 5e6], [0.1, 0.4, 0.4, 0.1], True),
        ("integer", np.arange(1900, 2031, 10), [0.9, *[0.1 / 12] * 12], False),
        ("date", [0, 10, 100, 100_000], [0.5, 0.4, 0.1], False),
        ("continuous", [0, 1, 2], [0, 0], False),
    ],
)
def test_the_axis_is_logarithmic_where_a_column_is_skewed(kind, edges, shares, logarithmic):
    edges, shares = np.asarray(edges), np.asarray(shares, dtype=float)
    axis = axis_of(kind, edges, shares, find_atoms(kind, edges))
    assert (axis.turn is not None) == logarithmic


@pytest.mark.parametrize(
    ("kind", "edges"),
    [
        *itertools.product(
            ["integer", "continuous", "date", "datetime"],
            [[0, 1], [5, 6, 7], [0, 40, 400], [-700_000, 0, 2_932_897]],
        ),
        ("datetime", [0, 10**9, 10**12]),
        ("datetime", [-62_135_596_800_000_000, 0, 253_402_300_800_000_000]),
        ("integer", [-(2**62), 0, 2**62]),
        ("continuous", [-1e300, 0, 1e-300, 1e300]),
        ("continuous", [0, 1e-300, 1e300]),
    ],
)
def test_whatever_the_bounds_there_is_a_chart(kind, edges):
    edges = np.asarray(edges, dtype=float if kind == "continuous" else np.int64)
    count = len(edges) - 1
    for shares in (np.zeros(count), np.full(count, 1 / count), np.eye(count)[0]):
        chart = histogram(bars_of(kind, edges, shares), "")
        assert "nan" not in chart
        assert "inf" not in chart
