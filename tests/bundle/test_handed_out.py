"""The variances that a release and the documentation hand out in words, formulas and SQL.

Each is taken from the text that a reader has, and gives the standard errors of `release.mean` and
`release.glm`. What is run as R is in `test_r`, the SQL of a page is run in `tests/report`.
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
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.fixture(scope="module")
def release(folder):
    found = cp.load(folder)
    # Else a formula that forgets the part would be as good.
    assert found.replicate_part < 0.9
    return found


MADE = {
    "as made": lambda made: made,
    "retargeted": lambda made: made.retarget({"smoker": 0.5}),
    "other rows": lambda made: made.sample(500, seed=1),
    # These weights have no doubt of their own, and replicates that are other samples altogether.
    "the whole way": lambda made: cp.release(
        made.table, made.schema, 3.0, 1e-6, weights="uniform", replicates=30, seed=2
    ),
}


@pytest.fixture(scope="module", params=list(MADE))
def handed(request, folder, tmp_path_factory) -> Path:
    """A saved release of each kind, by what was done to it since it was made."""
    if request.param == "as made":
        return folder
    made = MADE[request.param](cp.load(folder).use_weights())
    return made.save(tmp_path_factory.mktemp("handed") / "release")


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
    model = release.glm("dose ~ age")
    variances = scale * squares(release, slopes_of(release))
    errors = [each.standard_error for each in model.coefficients]
    assert np.sqrt(variances) == pytest.approx(errors, rel=1e-9)
    assert np.diag(model.covariance) == pytest.approx(variances, rel=1e-9)


def test_the_card_states_the_scale(handed):
    release = cp.load(handed)
    stated = release.card["replicates"]
    assert stated["variance"].startswith("scale times the sum over replicates of (estimate")
    hold(release, stated["scale"])


def test_the_words_and_the_code_on_the_page_give_the_error(handed):
    page = html.unescape((handed / "report.html").read_text(encoding="utf-8"))
    for said in (
        r"the variance of an estimate is (\S+) times the sum, over them, of "
        r"\(estimate with the replicate − estimate\)²",
        r'type = "other", scale = (\S+), rscales = rep\(1, 30\),',
        r"sqrt\((\S+) \* sum\(\(each\.mean - whole\.mean\) \*\* 2\)\) AS standard_error",
    ):
        [scale] = re.findall(said, page)
        hold(cp.load(handed), float(scale))


def test_inspect_says_the_scale(handed):
    release, shown = cp.load(handed), run("inspect", handed)
    said = re.search(r"(\d+); a variance is (\S+) times the sum of their squared distances", shown)
    assert int(said[1]) == release.replicate_count
    hold(release, float(said[2]))


def test_every_documented_formula_gives_the_error(handed):
    release = cp.load(handed)
    texts = {page: page.read_text(encoding="utf-8") for page in (*PAGES, *SOURCES)}
    said = [
        expression
        for text in texts.values()
        for expression in re.findall(
            r"\bV = ([^=\n]+?) sum(?: over r of |_r )\(theta_r - theta\)\^2", text
        )
    ]
    assert set(said) == {"c", "1/(R p^2)", "(1/R)"}
    known = {"R": release.replicate_count, "p": release.replicate_part}
    defined = {each for text in texts.values() for each in re.findall(r"\bc = (1/\([^)]*\))", text)}
    assert defined == {"1/(R p^2)"}
    for expression in {*said, *defined}:
        if expression == "c":
            hold(release, release.card["replicates"]["scale"])
        else:
            # In the code 1/R is said of results that were brought the whole way.
            brought = release.replicate_part**2 if expression == "(1/R)" else 1.0
            hold(release, of(expression, known) / brought)


def of(expression, known):
    """The value of a documented expression such as 1/(R p^2)."""
    return eval(expression.replace("^", "**").replace("R p", "R * p"), {}, known)


def words_of(page):
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (
            "curator.md",
            "The variance of an estimate is the card's `replicates.scale` times the sum, over "
            "replicates, of the squared distance between the estimate with the replicate's weights "
            "and the estimate with `weight`.",
        ),
        ("analyst.md", "`scale` times the sum of squared distances from the estimate"),
        ("methods/estimates.md", "the card has c as `replicates.scale`"),
        ("methods/replicates.md", "the card has it as `replicates.scale`"),
    ],
)
def test_documented_sentences_say_what_the_card_has(page, sentence, release):
    # That it is the sum, and not the mean, is what `hold` takes it for.
    assert sentence in words_of(page)
    hold(release, release.card["replicates"]["scale"])


def test_documented_figures_of_the_scale_are_those_of_releases(folder, handed):
    words = words_of("curator.md")
    said = re.search(r"It is 1/(\d+) for replicates that go the whole way, and more where", words)
    count, scale = re.search(r"(\d+); a variance is (\S+) times the sum", words).groups()
    assert count == said[1]
    release = cp.load(handed)
    stated = release.card["replicates"]["scale"] * release.replicate_count
    if release.replicate_part == 1:
        assert stated == pytest.approx(1, rel=1e-9)
    else:
        assert stated > 1
    assert float(scale) * int(count) >= 1 - 1e-9


def test_with_one_over_the_number_of_replicates_errors_come_out_as_that_part(release):
    said = "go [a part of the way](methods/replicates.md#a-part-of-the-way), and errors come out as"
    assert f"{said} that part." in words_of("sharp-edges.md")
    too_small = np.sqrt(squares(release, mean_of(release, "age")) / release.replicate_count)
    expected = release.replicate_part * release.mean("age").standard_error
    assert too_small == pytest.approx(expected, rel=1e-9)


def test_the_documented_variance_of_a_total_has_the_noise_of_the_number_of_rows(release):
    assert "Var T = N_p^2 Var(T / N_p) + (T / N_p)^2 Var N_p" in words_of("methods/estimates.md")
    assert "Var T = N^2 Var(T / N) + (T / N)^2 Var N" in words_of("methods/intervals.md")
    found, stated = release.total("age"), release.card
    rows, noise = stated["population"], stated["population_deviation"]
    assert noise > 0
    per_row = stated["replicates"]["scale"] * squares(release, mean_of(release, "age"))
    variance = rows**2 * per_row + (found.value / rows) ** 2 * noise**2
    assert found.standard_error == pytest.approx(np.sqrt(variance), rel=1e-9)


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
