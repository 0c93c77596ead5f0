from datetime import date

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.errors import AnalysisError
from tests.analysis.releases import brute_force, make_release, repeated


def test_a_histogram_counts_the_bins_of_the_schema():
    release = make_release()
    ages = repeated(release)["age"]
    found = release.histogram("age")
    counts, _ = np.histogram(ages, bins=np.arange(0, 101, 10))
    assert [member.value for member in found] == pytest.approx(counts / len(ages))
    assert found.labels[0] == ("0 to 9",)


def test_a_histogram_leaves_nulls_out_and_takes_other_edges():
    release = make_release()
    doses = repeated(release)["dose"].dropna()
    edges = [0.0, 2.5, 7.0, 10.0]
    counts, _ = np.histogram(doses, bins=edges)
    found = release.histogram("dose", bins=edges)
    assert [member.value for member in found] == pytest.approx(counts / len(doses))
    whole = release.histogram("dose")
    assert sum(member.value for member in whole) == pytest.approx(1)


def test_edges_of_a_histogram_may_be_dates():
    release = make_release()
    edges = [date(2020, 1, 1), date(2021, 1, 1), date(2023, 1, 1)]
    found = release.histogram("seen", bins=edges)
    early = repeated(release)["seen"] < "2021-01-01"
    assert found.members[0].value == pytest.approx(early.mean())
    assert found.labels[0] == ("2020-01-01 to 2020-12-31",)


@pytest.mark.parametrize(
    ("column", "bins"),
    [
        ("age", [0, 10, 5]),
        ("age", [0]),
        ("age", 5),
        ("age", [0, 2.5, 9]),
        ("seen", [0, 10]),
        ("ward", [0, 1]),
    ],
)
def test_impossible_bins_are_refused(column, bins):
    with pytest.raises(AnalysisError, match="bins"):
        make_release().histogram(column, bins=bins)


@pytest.mark.parametrize(("of", "normalize"), [("all", "all"), ("rows", "index")])
def test_a_crosstab_is_that_of_the_repeated_rows(of, normalize):
    release = make_release()
    rows = repeated(release)
    expected = pd.crosstab(rows["pain"], rows["ill"], normalize=normalize)
    found = release.crosstab("pain", "ill", of=of).pivot()
    assert found.index.tolist() == ["none", "some", "much"]
    assert found.to_numpy() == pytest.approx(expected.to_numpy())


def test_a_crosstab_within_columns_adds_up_to_one_in_each():
    found = make_release().crosstab("pain", "ill", of="columns").pivot()
    assert found.sum().tolist() == pytest.approx([1, 1])


def test_the_errors_of_a_crosstab_are_those_of_its_shares():
    release = make_release()
    known = release.table["pain"].notna().to_numpy()
    inside = ((release.table["pain"] == "some") & release.table["ill"]).to_numpy()

    def cell(table, weights):
        return weights[inside].sum() / weights[known].sum()

    found = release.crosstab("pain", "ill")
    assert found["some", True].standard_error == pytest.approx(brute_force(release, cell))
    errors = found.pivot("standard_error")
    assert errors.loc["some", True] == pytest.approx(brute_force(release, cell))


def test_covariance_and_correlation_are_those_of_the_repeated_rows():
    release = make_release()
    rows = repeated(release)[["age", "dose"]].dropna().to_numpy(float)
    assert release.cov("age", "dose").value == pytest.approx(np.cov(rows.T, ddof=0)[0, 1])
    assert release.corr("age", "dose").value == pytest.approx(np.corrcoef(rows.T)[0, 1])
    plain = release.table[["age", "dose"]].dropna().to_numpy(float)
    assert release.corr("age", "dose").unweighted == pytest.approx(np.corrcoef(plain.T)[0, 1])


def test_the_error_of_a_correlation_is_the_spread_of_its_replicates():
    release = make_release()
    both = release.table["dose"].notna().to_numpy()
    values = release.table.loc[both, ["age", "dose"]].to_numpy(float)

    def correlation(table, weights):
        covariance = np.cov(values.T, aweights=weights[both], ddof=0)
        return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])

    found = release.corr("age", "dose").standard_error
    assert found == pytest.approx(brute_force(release, correlation))


def test_all_pairs_of_columns_with_numbers():
    release = make_release()
    found = release.corr()
    names = ["ill", "age", "children", "dose", "seen", "left"]
    assert found.pivot().columns.tolist() == names
    assert np.diag(found.pivot()).tolist() == [1.0] * 6
    assert found["age", "dose"] == found["dose", "age"] == release.corr("age", "dose")
    # Both are dates of one visit, counted in days.
    assert found["seen", "left"].value == pytest.approx(1, abs=1e-4)
    variance = np.var(repeated(release)["age"].to_numpy(float))
    assert release.cov("age", "dose", "ill")["age", "age"].value == pytest.approx(variance)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda release: release.crosstab("ward", "ill", of="cells"), "all, rows, columns"),
        (lambda release: release.crosstab("ward", "ward"), "two columns"),
        (lambda release: release.corr("age"), "two columns or more"),
        (lambda release: release.corr("age", "age"), "once"),
        (lambda release: release.corr("age", "ward"), "'ward' is categorical"),
        (lambda release: release.mean("age", by="ward").pivot(), "to_frame"),
        (lambda release: release.crosstab("ward", "ill").pivot("middle"), "value"),
    ],
)
def test_what_cannot_be_asked_is_refused(ask, words):
    with pytest.raises(AnalysisError, match=words):
        ask(make_release())


def test_tables_of_more_cells_than_anybody_reads_are_refused_at_once():
    names = [f"c{place}" for place in range(2000)]
    schema = cp.Schema([cp.Column.categorical(column, names) for column in "ab"])
    table = pd.DataFrame(dict.fromkeys("ab", names))
    release = cp.Release(schema.restore(table).assign(weight=1.0), schema, {}, np.ones((2000, 2)))
    for ask in (
        lambda: release.crosstab("a", "b"),
        lambda: release.proportion("a", by="b"),
        lambda: release.total(by=["a", "b"]),
    ):
        with pytest.raises(AnalysisError, match="make more than 10,000 groups"):
            ask()
    # One column may have as many as its schema lists.
    assert len(release.proportion("a")) == 2000
    with pytest.raises(AnalysisError, match="1,999 coefficients, more than 500"):
        release.glm("a ~ 1")
