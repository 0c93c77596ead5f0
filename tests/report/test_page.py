"""The released page: complete, self-contained, true to the release, and right when copied."""

import contextlib
import html
import itertools
import re
from dataclasses import replace
from datetime import datetime

import duckdb
import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import counterpoise as cp
from counterpoise.report import release_page
from counterpoise.report.snippets import Snippets
from counterpoise.weights import moment_model
from tests.conftest import make_schema, make_table


@pytest.fixture(scope="module")
def release():
    with pytest.MonkeyPatch.context() as patch:
        # As if rows could follow next to nothing of what is in doubt.
        patch.setattr(moment_model, "MOST_MOVED", 1e-3)
        return cp.release(
            make_table(2000), make_schema(), 2.0, 1e-6, rows=600, replicates=10, seed=1
        )


@pytest.fixture(scope="module")
def page(release):
    return release_page(release)


@pytest.fixture(scope="module")
def weighed(release):
    """The release with weights that differ, as rows have that were not chosen by weight."""
    weights = np.linspace(0.5, 1.5, len(release.table))
    return release.reweighted(weights, release.replicates.astype(float) * weights[:, None])


def judged(release, level, reason="few rows count", way_out="draw more rows"):
    verdict = {"level": level, "reason": reason, "way_out": way_out}
    weights = release.card["weights"] | {"verdict": verdict}
    return replace(release, card=release.card | {"weights": weights})


def test_the_page_loads_nothing_and_runs_nothing(page):
    assert not re.search(r"<script|<link|<img|<iframe|@import|url\(|https?:|//[a-z]", page)


def test_the_page_lets_a_browser_take_nothing_but_styles_and_from_nowhere_else(page):
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert dict(part.split(" ", 1) for part in policy.split("; ")) == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    # A policy is of what stands after it.
    assert page.index(policy) < page.index("<style>")


def test_names_on_the_page_are_seen_and_do_nothing():
    odd = ("\x1b[31mred", "</td><script>1</script>", "\u202egpj.exe", "=cmd|' /C calc'!A0")
    schema = cp.Schema([cp.Column.categorical(name, [*odd]) for name in odd])
    rows = pd.DataFrame({name: [*odd] * 20 for name in odd})
    made = cp.release(rows, schema, 1.0, 1e-6, rows=60, synthesizer="independent", replicates=0)
    page = release_page(made)
    assert "<script" not in page
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert "\\u001b[31mred" in page and "\\u202egpj.exe" in page


def test_the_page_has_every_part_that_a_reader_needs(release, page):
    for heading in (
        "The weights",
        "What was spent",
        "The columns",
        "The pairs of columns",
        "Some rows",
        "The schema",
        "How it was made",
        "How to use it",
    ):
        assert re.search(rf'<h2 id="\w+">{heading}</h2>', page)
    for name in release.schema.names:
        assert f"<h3>{name}</h3>" in page
    for spend in release.ledger.to_frame()["query"]:
        assert escape(spend) in page
    assert "Not private" in page


def test_every_column_is_shown_without_weights_and_with_them():
    schema = cp.Schema([cp.Column.categorical("sex", ["F", "M"])])
    table = pd.DataFrame({"sex": ["F", "M"], "weight": [0.5, 1.5]})
    made = cp.release(make_table(200), schema, 1.0, rows=2, replicates=0)
    shown = release_page(replace(made, table=schema.restore(table)))
    assert "F: 50.0% unweighted, 25.0% weighted" in shown
    assert "M: 50.0% unweighted, 75.0% weighted" in shown
    assert "weights move 25.0% of the rows" in shown


@pytest.mark.parametrize(
    ("level", "headline"),
    [
        ("fine", "The weights can be used."),
        ("caution", "Use the weights with caution."),
        ("do not use", "Do not use the weights."),
    ],
)
def test_the_verdict_is_in_plain_words_with_its_reason_and_the_way_out(weighed, level, headline):
    shown = release_page(judged(weighed, level))
    assert headline in shown
    assert "Few rows count. The way out: draw more rows." in shown


def test_the_page_says_what_the_replicates_rest_on(release):
    found = release.card["replicates"]
    worst = f"the worst of them counts as {found['worst_effective_sample_size']:,.0f} rows"
    assert worst in release_page(release)
    columns = release.replicates.astype(float)
    columns[:, 0] = np.arange(len(columns)) < 2
    doubtful = release_page(release.reweighted(release.weights, columns))
    assert "The error bars rest on few rows: 1 of the 10 replicate weights" in doubtful


def test_weights_that_round_to_the_same_are_one_number(weighed):
    assert "Nine rows of ten have a weight of 0.55 to 1.4;" in release_page(weighed)
    near = np.where(np.arange(weighed.rows) < 3, 1.5, 1.0)
    page = release_page(weighed.reweighted(near))
    assert "Nine rows of ten have a weight of 1;" in page
    assert not re.search(r"\b([\d.]+) (?:to|and) \1(?![\d.,])", page)


def test_equal_weights_are_said_to_change_nothing(release):
    made = judged(release.unweighted(), "fine", "all weights are equal", "")
    card = {key: value for key, value in made.card.items() if key != "chosen_from"}
    shown = release_page(replace(made, card=card))
    assert "All weights are equal: they change nothing." in shown
    assert "Rows by their weight" not in shown
    assert "no honest intervals" in shown
    assert "Relations that the weights change most" not in shown
    # One table is shown, and not the same one twice.
    assert "the synthetic rows; all have the same weight" in shown
    assert "with their weights" not in shown
    assert "the weights move" not in shown
    assert "unweighted, " not in shown.split('id="pairs"')[1].split('id="support"')[0]


def test_names_from_the_schema_cannot_become_markup():
    name, category = "<script>alert(1)</script>", "</title><b>&"
    schema = cp.Schema([cp.Column.categorical(name, [category, "other"])])
    rows = pd.DataFrame({name: [category] * 50})
    shown = release_page(cp.release(rows, schema, 1.0, rows=20, replicates=2))
    assert "<script" not in shown
    assert "<b>" not in shown


def test_a_caveat_is_on_the_page(release):
    caveat = "the table's own cost is yours to add"
    shown = release_page(replace(release, card=release.card | {"caveat": caveat}))
    assert escape(caveat) in shown
    assert "Mind:" not in release_page(release)


def test_a_release_without_rows_has_a_page(release):
    empty = replace(release, table=release.table.iloc[:0], replicates=None)
    assert "0 synthetic rows" in release_page(empty)


def code(page, language):
    return html.unescape(re.search(rf'<pre id="{language}">(.*?)</pre>', page, re.S).group(1))


@pytest.fixture
def folder(release, tmp_path):
    return release.save(tmp_path / "out")


def test_the_python_on_the_page_runs(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    with contextlib.chdir(folder):
        names = {}
        exec(code(page, "python"), names)
    assert len(names["release"].table) == 600


def test_the_sql_on_the_page_gives_the_estimate_and_its_error(folder, release):
    page = (folder / "report.html").read_text(encoding="utf-8")
    grouped, whole = (part for part in code(page, "sql").split(";") if part.strip())
    with contextlib.chdir(folder):
        by_sex = dict(duckdb.sql(grouped).fetchall())
        ((mean, error),) = duckdb.sql(whole).fetchall()
    # What lies beyond all rows, and no weight carries, is in Python alone.
    age = release.schema["age"]
    calm = replace(age, shape=replace(age.shape, noise=0.0))
    expected = replace(release, schema=release.schema.replace(calm)).mean("age")
    assert release.replicate_part < 0.9
    assert mean == pytest.approx(expected.value, rel=1e-9)
    assert error == pytest.approx(expected.standard_error, rel=1e-9)
    for label, own in release.mean("age", by="sex").items():
        assert by_sex[label] == pytest.approx(own.value)


def test_the_r_on_the_page_states_the_convention_of_the_replicates(release, page):
    shown = code(page, "r")
    scale = release.card["replicates"]["scale"]
    assert f'type = "other", scale = {scale}, rscales = rep(1, 10)' in shown
    assert "mse = TRUE" in shown


def test_snippets_quote_names_that_need_it():
    schema = cp.Schema([cp.Column.continuous('the "mean" radius', 0, 1)])
    snippets = Snippets(schema, replicates=0)
    assert 'release.mean("the \\"mean\\" radius")' in snippets.python
    assert '"the ""mean"" radius"' in snippets.sql
    assert '`the "mean" radius`' in snippets.r
    assert "svydesign" in snippets.r


def test_snippets_for_a_table_without_numbers_ask_for_shares(tmp_path):
    schema = cp.Schema([cp.Column.categorical("sex", ["F", "M"])])
    made = cp.release(make_table(500), schema, 1.0, rows=100, replicates=4, seed=1)
    folder = made.save(tmp_path / "out")
    snippets = Snippets(schema, 4)
    with contextlib.chdir(folder):
        exec(snippets.python, {})
        shares = dict(duckdb.sql(snippets.sql).fetchall())
    assert shares["F"] == pytest.approx(made.proportion("sex", "F").value)


def test_a_hundred_categories_are_shown_as_the_largest_and_the_others():
    names = [f"c{place}" for place in range(100)]
    schema = cp.Schema([cp.Column.categorical("code", names)])
    rows = pd.DataFrame({"code": np.random.default_rng(0).choice(names, 3000)})
    shown = release_page(cp.release(rows, schema, 5.0, rows=300, replicates=0, seed=1))
    assert "93 others" in shown


def release_of(schema, table):
    """A release of these rows, whose card is that of a small one."""
    small = cp.Schema([cp.Column.boolean("ill")])
    made = cp.release(pd.DataFrame({"ill": [True, False] * 50}), small, 1.0, 1e-6, rows=50, seed=1)
    rows = schema.restore(table)
    weight = pd.DataFrame({"weight": np.ones(len(rows))})
    return cp.Release(pd.concat([rows, weight], axis=1), schema, made.card)


def test_very_many_bins_are_drawn_together():
    schema = cp.Schema(
        [
            cp.Column.integer("income", 0, 99_999, bins=100_000),
            cp.Column.continuous("dose", 0, 1, bins=100_000),
            cp.Column.datetime("at", datetime(2000, 1, 1), datetime(2020, 1, 1), bins=100_000),
            cp.Column.categorical("zip", [f"{code:06}" for code in range(100_000)]),
        ]
    )
    table = pd.DataFrame(
        {
            "income": [50_000, 50_999, 51_000, 99_999],
            "dose": [0.0, 0.5, 0.9, 1.0],
            "at": pd.to_datetime(["2000-01-01", "2010-01-01", "2012-01-01", "2020-01-01"]),
            "zip": ["000000", "000001", "050000", "099999"],
        }
    )
    page = release_page(release_of(schema, table))
    assert len(page) < 150_000  # it had 45 MB with a bar a bin
    assert "100,000 bins, drawn as 100 bars" in page
    # Two of the four rows are in one bar, which holds a thousand bins.
    assert "50,000 to 50,999: 50.0% unweighted, 50.0% weighted" in page
    assert "51,000 to 51,999: 25.0% unweighted" in page
    assert "99,993 others" in page


def test_bins_that_do_not_divide_evenly_are_all_drawn():
    schema = cp.Schema([cp.Column.integer("x", 0, 250, bins=251)])
    page = release_page(release_of(schema, pd.DataFrame({"x": range(251)})))
    bars = re.findall(r"<title>([0-9]+)(?: to ([0-9]+))?: ([0-9.]+)% unweighted", page)
    assert len(bars) == 100
    ends = [(int(low), int(high or low)) for low, high, _ in bars]
    assert ends[0][0] == 0
    assert ends[-1][1] == 250
    assert all(left[1] + 1 == right[0] for left, right in itertools.pairwise(ends))
    assert {high - low + 1 for low, high in ends} == {2, 3}


def test_very_many_columns_and_looks_end_with_how_many_more_there_are():
    names = [f"column {place}" for place in range(600)]
    schema = cp.Schema([cp.Column.integer(name, 0, 999, bins=1000) for name in names])
    table = pd.DataFrame({name: [0, 500, 999] for name in names})
    page = release_page(release_of(schema, table))
    assert len(page) < 3_000_000
    assert "600 columns" in page
    assert "These are the first 120 columns; 480 more are" in page
    assert "and 300 more, listed in datapackage.json" in page
    narrow = release_of(cp.Schema([cp.Column.boolean("ill")]), pd.DataFrame({"ill": [True, False]}))
    many = pd.concat([narrow.ledger.to_frame()] * 2000, ignore_index=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(narrow.ledger), "to_frame", lambda self: many)
        page = release_page(narrow)
    assert f"{len(many):,} looks at the private table" in page
    assert f"and {len(many) - 300:,} more, listed in datapackage.json" in page
    assert len(page) < 150_000


def test_the_contents_lead_to_every_part(page):
    linked = re.findall(r'<li><a href="#(\w+)">', page)
    assert linked == re.findall(r'<h2 id="(\w+)">', page)


def test_what_is_folded_on_other_pages_is_open_and_uncut_in_print(page):
    assert page.count("<details open>") == page.count("<details") == 2
    printed = page[page.index("@media print") : page.index("</style>")]
    assert ".long { max-height: none; }" in printed
    assert re.search(r"\.box,[^}]*break-inside: avoid", page)


def test_the_first_rows_are_shown_and_said_to_be_synthetic(release, page):
    part = page[page.index('<h2 id="rows">') : page.index('<h2 id="schema">')]
    assert "They are synthetic" in part
    lines = [re.findall(r"<t[dh]>(.*?)</t[dh]>", line) for line in part.split("<tr>")[1:]]
    assert lines[0] == [*release.schema.names, "weight"]
    assert len(lines) == 11
    shown = [None if value == "null" else value for value in (line[1] for line in lines[1:])]
    expected = release.table["grade"].head(10)
    assert shown == expected.astype(object).where(expected.notna(), None).tolist()
    assert [line[0] for line in lines[1:]] == release.table["sex"].head(10).astype(str).tolist()


def test_the_schema_says_how_many_values_of_a_column_are_null(release, page):
    nulls = release.table["grade"].isna()
    assert f"<td>{nulls.mean():.1%}</td>" in page
    assert page.count("<td>none</td>") == 3
    # Where weights make another share of it, that one too.
    weights = np.where(nulls, 2.0, 1.0)
    made = release.reweighted(weights, release.replicates.astype(float) * weights[:, None])
    weighted = float(np.average(nulls, weights=weights))
    assert f"<td>{nulls.mean():.1%}, weighted {weighted:.1%}</td>" in release_page(made)


def test_every_chart_has_words_for_those_who_do_not_see_it(page):
    charts = re.findall(r"<svg[^>]*>", page)
    assert charts
    for chart in charts:
        assert 'role="img"' in chart
        assert re.search(r'aria-label="[^"]{15,}"|aria-hidden="true"', chart)


def test_the_error_bars_are_the_intervals_of_the_shares(release, page):
    share = release.proportion("sex", "F")
    assert (
        f"F: {(release.table['sex'] == 'F').mean():.1%} unweighted, "
        f"{share.value:.1%} weighted ± {share.interval()[1] - share.value:.1%}" in page
    )
    assert " ± " not in release_page(release.unweighted()).split("How to use it")[0]


def test_rows_that_were_chosen_by_weight_are_said_to_carry_the_correction(release, page):
    assert "The rows carry the correction: they were chosen by weight." in page
    assert "The rows were chosen by weight from 2,400 that were drawn." in page
    assert release.card["chosen_from"] == 2400


def test_the_pairs_are_drawn_twice_unless_the_weights_are_equal(release, weighed):
    page = release_page(weighed)
    pairs = page[page.index('<h2 id="pairs">') : page.index('<h2 id="rows">')]
    assert pairs.count("sex × age: ") >= 2
    assert "With their weights" in pairs
    plain = release_page(release.unweighted())
    assert plain.count("sex × age: ") == 1
    assert "<h3>With their weights</h3>" not in plain


def test_a_column_by_itself_has_no_pairs():
    schema = cp.Schema([cp.Column.boolean("ill")])
    page = release_page(release_of(schema, pd.DataFrame({"ill": [True, False]})))
    assert "The pairs of columns" not in page
    assert "#pairs" not in page


def test_long_names_are_cut():
    schema = cp.Schema([cp.Column.categorical("x" * 5000, ["a" * 5000, "b"])])
    page = release_page(release_of(schema, pd.DataFrame({"x" * 5000: ["b", "a" * 5000]})))
    assert f"{'a' * 119}…: 50.0% unweighted" in page
    assert "a" * 121 not in page


def test_pairs_that_were_not_measured_together_are_marked(weighed):
    names = list(weighed.schema.plain.names)
    assert len(names) >= 3

    def shown(counts, assumed=()):
        measured = {"counts": counts, "cells": [], "products": [], "assumed": list(assumed)}
        page = release_page(replace(weighed, card=weighed.card | {"measured": measured}))
        body = page[page.index('<h2 id="pairs">') : page.index('<h2 id="rows">')]
        said = re.search(r'id="support">(.*?)</p>', body, re.DOTALL).group(1)
        # The second map is of the weighted rows; the key has each mark once more.
        maps = body.count("Heat map of")
        return said, (body.count("<circle") / maps, body.count('d="M') / maps)

    pairs = len(names) * (len(names) - 1) // 2
    said, marks = shown([names])
    assert said == f"Of {pairs} pairs, {pairs} were measured together."
    assert marks == (0, 0)
    chain = [list(pair) for pair in itertools.pairwise(names[:3])] + [[each] for each in names[3:]]
    said, marks = shown(chain)
    never = pairs - 3
    assert "2 were measured together; 1 follow from smaller measurements" in said
    assert f"{never} were never measured" in said
    assert marks == (1 + 0.5, never + 0.5)
    said, marks = shown([[each] for each in names], [[names[:2], 0.83]])
    assert "1 follow from smaller measurements" in said
    assert "(of 1 something was summed, which does not carry it: about 83% of the variance" in said
    assert marks[0] == 1 + 0.5
    said, marks = shown(None)
    assert f"of {pairs} nothing says whether they were measured" in said
    assert marks == (0, 0)


TINY = 5e-324  # the least number above zero, which is as wide as an atom of zero is
ODD = {
    "all zero": (cp.Column.continuous("x", 0, 1e6, bins=[0, TINY, 10, 1e6]), [0.0, 0.0]),
    "nearly all zero": (
        cp.Column.continuous("x", -10, 1e6, bins=[-10, 0, TINY, 10, 1e6]),
        [0.0] * 30 + [1e6],
    ),
    "all next to zero": (
        cp.Column.continuous("x", 0, 1e-300, bins=[0, TINY, 2 * TINY, 1e-300]),
        [TINY],
    ),
    "as wide as can be": (cp.Column.continuous("x", -4e299, 4e299, bins=3), [-4e299, 4e299]),
    "far from zero": (cp.Column.continuous("x", 1e308, 1.0000000001e308), [1e308]),
    "one value": (cp.Column.continuous("x", 0, 1, bins=[0, 0.5, np.nextafter(0.5, 1), 1]), [0.5]),
    "one whole number": (cp.Column.integer("x", 7, 7), [7, 7]),
    "every day": (cp.Column.date("x", "0001-01-01", "9999-12-31"), pd.to_datetime(["2000-01-01"])),
    "one day": (cp.Column.date("x", "2000-01-01", "2000-01-01"), pd.to_datetime(["2000-01-01"])),
    "all null": (cp.Column.continuous("x", 0, 1, nullable=True), [np.nan, np.nan]),
    "no rows": (cp.Column.continuous("x", 0, 1), np.array([], dtype=float)),
}


@pytest.mark.parametrize("weight", ["equal", "next to nothing"])
@pytest.mark.parametrize("case", ODD)
def test_no_column_is_too_odd_for_the_page(case, weight):
    column, values = ODD[case]
    schema = cp.Schema([column, cp.Column.boolean("ill")])
    rows = pd.DataFrame({"x": values, "ill": [place % 2 == 0 for place in range(len(values))]})
    release = release_of(schema, rows)
    if weight != "equal":
        weights = np.where(rows["ill"], 1.0, 1e-300)
        release = replace(release, table=release.table.assign(weight=weights))
    page = release_page(release)
    assert not re.search(r'[" ,>](nan|inf)[" ,%<]', page)
