"""Attacks find the people in a table that was copied, and nobody in one released privately."""

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import MethodError
from counterpoise.evaluation.attacks import (
    attack_all,
    density_ratio,
    inference,
    presence,
    set_scene,
)
from tests.evaluation.attacks.people import ROWS, copied, people, private_release, released

COLUMNS = [
    *("attack", "measure", "columns", "value", "low", "high"),
    *("baseline", "baseline_low", "baseline_high", "says"),
]
# By construction about 55%, whatever is released; and what knows nothing of people.
WITHOUT_POWER = {("presence disclosure", "precision"), ("singling out", "random predicates")}


@pytest.fixture(scope="module")
def private():
    return people(ROWS, 1)


@pytest.fixture(scope="module")
def holdout():
    return people(ROWS, 2)


@pytest.fixture(scope="module")
def on_copies(private, holdout):
    return attack_all(copied(private), private, holdout, rehearse=copied)


@pytest.fixture(scope="module")
def on_private_release(private, holdout):
    return attack_all(private_release(private), private, holdout)


def test_every_attack_finds_copied_people(on_copies):
    assert on_copies["attack"].nunique() == 7
    for risk in on_copies.itertuples():
        if (risk.attack, risk.measure) not in WITHOUT_POWER:
            assert risk.low > risk.baseline_high, (risk.attack, risk.measure, risk.columns)


def test_copies_are_more_than_their_budget_allows(on_copies):
    implied = on_copies[on_copies["measure"] == "implied epsilon"]
    assert len(implied) == 4
    assert (implied["low"] > 1.0).all()


def test_no_attack_beats_chance_on_a_private_release(on_private_release):
    found = on_private_release
    assert not found["value"].isna().all()
    assert (found["low"] > found["baseline_high"]).sum() == 0
    implied = found[found["measure"] == "implied epsilon"]
    assert (implied["low"] <= 1.0).all()


def test_the_table_keeps_to_its_contract(on_copies, on_private_release):
    for found in (on_copies, on_private_release):
        assert list(found.columns) == COLUMNS
        assert set(found["columns"]) == {"table", "table and weights"}
        stated = found.dropna()
        assert (stated["low"] <= stated["value"]).all()
        assert (stated["value"] <= stated["high"]).all()
        assert (stated["baseline_low"] <= stated["baseline"]).all()
        assert (stated["baseline"] <= stated["baseline_high"]).all()
        assert found["says"].str.endswith((".", ").")).all()
        assert not found.duplicated(["attack", "measure", "columns"]).any()


def test_uniform_weights_add_nothing(on_copies):
    by_columns = on_copies.set_index(["attack", "measure"])
    plain = by_columns[by_columns["columns"] == "table"]
    weighted = by_columns[by_columns["columns"] == "table and weights"]
    same = [name for name in plain.index if "shadow" not in name[0] and "singling" not in name[0]]
    for name in same:
        assert weighted.loc[name, "value"] == pytest.approx(plain.loc[name, "value"], abs=1e-9)


def test_a_seed_repeats_the_attacks_and_another_does_not(private, holdout):
    release = copied(private[:300])
    few = private[:300], holdout[:200]
    first, again = (attack_all(release, *few, seed=4, rehearse=copied) for _ in range(2))
    assert first.equals(again)
    other = inference(set_scene(release, *few, seed=5)).risks[0]
    [same] = first[(first["measure"] == other.measure) & (first["columns"] == other.columns)].index
    assert other.baseline != first["baseline"][same]


def test_without_a_holdout_what_is_missing_is_said(private):
    stages = []
    found = attack_all(copied(private), private, progress=lambda stage, done: stages.append(done))
    missing = found[found["value"].isna()]
    assert set(missing["attack"]) == {
        *("presence disclosure", "membership by density ratio", "membership by shadow releases")
    }
    assert missing["says"].str.contains("no hold-out was given").all()
    others = found[found["value"].notna()]
    assert others["says"].str.contains("There is no hold-out").all()
    assert stages == sorted(stages)
    assert stages[-1] == 1.0


def test_a_release_that_cannot_be_rehearsed_says_so(private, holdout):
    found = attack_all(copied(private), private[:200], holdout[:100])
    missing = found[found["value"].isna()]
    assert set(missing["attack"]) == {"membership by shadow releases"}
    assert missing["says"].str.contains("does not say how it was made").all()


def test_too_few_rows_are_refused(private, holdout):
    with pytest.raises(MethodError, match="at least 20"):
        attack_all(copied(private), private[:10], holdout)
    with pytest.raises(MethodError, match="holdout"):
        attack_all(copied(private), private, holdout[:10])
    with pytest.raises(MethodError, match="release"):
        attack_all(private, private, holdout)


def test_weights_that_know_who_is_private_give_them_away(private, holdout):
    """Decoys hide blurred copies from whoever has the table, not from whoever has weights too."""
    decoys = people(4 * ROWS, 7)
    generator = np.random.default_rng(0)
    blurred = private.assign(
        **{name: generator.permutation(private[name]) for name in ("pin", "town", "height")}
    )
    table = pd.concat([blurred, decoys], ignore_index=True)
    weights = np.repeat([100.0, 0.01], [len(blurred), len(decoys)])
    scene = set_scene(released(table, weights), private, holdout)
    for attack, place in ((density_ratio, 0), (presence, 0)):
        risks = attack(scene).risks
        plain, weighted = (
            [risk for risk in risks if risk.columns == columns][place]
            for columns in ("table", "table and weights")
        )
        gained = weighted.value - weighted.baseline - (plain.value - plain.baseline)
        assert gained > 0.01, plain.attack
