"""The variances that a release and the documentation hand out in words and in SQL.

Each is taken from the text that a reader has, and gives the standard errors of `release.mean` and
`release.glm`. The R is in `test_r`, the SQL of a page in `tests/report`.
"""

import contextlib
import html
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

import counterpoise as cp
from tests.cli.calls import run

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.fixture(scope="module")
def release(folder):
    found = cp.load(folder)
    # Else a formula that forgets the part would be as good.
    assert found.replicate_part < 0.9
    return found


def squares(release, statistic):
    """The sum over replicates of (statistic with the replicate - statistic)^2."""
    weights = release.replicates.astype(float).T
    full = statistic(release.weights)
    return sum((statistic(each) - full) ** 2 for each in weights)


def mean_of(release, name):
    known = release.table[name].notna()
    values = release.table.loc[known, name].astype(float)
    return lambda weights: np.average(values, weights=weights[known])


def slopes_of(release):
    """Least squares of dose by age, by the normal equations."""
    rows = release.table.dropna(subset="dose")
    left = np.column_stack([np.ones(len(rows)), rows["age"]])

    def slopes(weights):
        own = left * weights[rows.index][:, None]
        return np.linalg.solve(left.T @ own, own.T @ rows["dose"])

    return slopes


def hold(release, scale):
    """That this scale, times the sum of squares, is the variance of means and of a model."""
    for name in ("age", "ill", "dose"):
        variance = scale * squares(release, mean_of(release, name))
        assert np.sqrt(variance) == pytest.approx(release.mean(name).standard_error, rel=1e-9)
    errors = [each.standard_error for each in release.glm("dose ~ age").coefficients]
    assert np.sqrt(scale * squares(release, slopes_of(release))) == pytest.approx(errors, rel=1e-9)


def test_the_card_states_the_scale(release):
    stated = release.card["replicates"]
    assert stated["variance"].startswith("scale times the sum over replicates of (estimate")
    hold(release, stated["scale"])


def test_the_words_on_the_page_give_the_error(folder, release):
    page = html.unescape((folder / "report.html").read_text(encoding="utf-8"))
    said = re.search(
        r"the variance of an estimate is (\S+) times the sum, over them, of "
        r"\(estimate with the replicate − estimate\)²",
        page,
    )
    hold(release, float(said[1]))


def test_inspect_says_the_scale(folder, release):
    shown = run("inspect", folder)
    said = re.search(r"(\d+); a variance is (\S+) times the sum of their squared distances", shown)
    assert int(said[1]) == release.replicate_count
    hold(release, float(said[2]))


def test_the_documented_sql_gives_the_error_in_every_page(folder, release):
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    ]
    asked = []
    with contextlib.chdir(folder.parent):
        for block in blocks:
            ((value, *error),) = duckdb.sql(block).fetchall()
            mean = release.mean("age")
            assert value == pytest.approx(mean.value, rel=1e-9)
            assert error == pytest.approx([mean.standard_error] * len(error), rel=1e-9)
            asked += error
    assert len(blocks) == 2
    assert len(asked) == 1
