"""What a release promises of privacy is no more than its ledger can know."""

import json

import numpy as np
import pytest

import counterpoise as cp
from counterpoise.report import release_page
from counterpoise.weights import Oracle
from tests.cli.calls import run

pytestmark = pytest.mark.filterwarnings("ignore::counterpoise.CounterpoiseWarning")

WHOLE = "private: epsilon 1, delta 1e-06"
WEIGHTS = f"{WHOLE}; in the weights only"
STATED = f"{WHOLE}; as stated by the caller"


def made(table, schema, **options):
    return cp.release(
        table, schema, 1.0, 1e-6, rows=50, replicates=0, synthesizer="independent", **options
    )


def weighed(table, schema, **options):
    """The private table itself, handed in as if it were synthetic."""
    return cp.weigh(table, table, schema, 1.0, 1e-6, replicates=0, **options)


RELEASES = {
    "whole": (made, {}, WHOLE),
    "seeded": (made, {"seed": 1}, "not private: the noise was drawn from a seed"),
    "oracle": (made, {"weights": Oracle(lambda table: np.zeros(len(table)))}, STATED),
    "weighed": (weighed, {}, WEIGHTS),
    "weighed by an oracle": (weighed, {"method": Oracle()}, WEIGHTS),
    "weighed, seeded": (weighed, {"seed": 1}, "not private"),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_a_release_claims_to_be_private_only_as_far_as_its_ledger_goes(
    table, schema, tmp_path, kind
):
    make, options, expected = RELEASES[kind]
    release = make(table, schema, **options)
    loaded = cp.load(release.save(tmp_path / "out"))
    written = json.loads((tmp_path / "out" / "datapackage.json").read_text())["counterpoise"]
    assert release.guarantee == loaded.guarantee == written["guarantee"]
    assert release.guarantee.startswith(expected)
    assert release.private is loaded.private is (kind == "whole")
    shown = run("inspect", tmp_path / "out")
    assert release.guarantee in shown
    assert json.loads(run("inspect", tmp_path / "out", "--json"))["guarantee"] == release.guarantee
    assert expected in release_page(release)
    for text in (repr(release), repr(loaded)):
        assert ("private" in text.lower()) is (kind != "whole")
        assert ("NOT PRIVATE (seeded)" in text) is ("seeded" in kind)


def test_both_limits_are_said_of_a_table_and_a_ratio_that_were_handed_in(table, schema):
    release = weighed(table, schema, method=Oracle())
    assert "in the weights only" in release.guarantee
    assert "as stated by the caller" in release.guarantee
    assert release.guarantee in repr(release)


def test_the_page_of_a_table_made_elsewhere_does_not_vouch_for_its_records(table, schema):
    claim = "No record of a real person is in it"
    assert claim in release_page(made(table, schema))
    assert claim not in release_page(weighed(table, schema))


def test_weights_that_were_replaced_are_the_callers(table, schema):
    release = made(table, schema)
    other = release.reweighted(np.ones(50))
    assert other.guarantee.startswith(STATED)
    assert not other.private
    assert other.unweighted().private


def test_a_release_without_a_ledger_promises_nothing(table, schema):
    release = cp.Release(table.assign(weight=1.0), schema, card={})
    assert release.guarantee.startswith("unknown")
    assert not release.private
