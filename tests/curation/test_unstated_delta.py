"""A budget that is pure because nobody stated a delta says what one would bring, once."""

import warnings

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.curation.plan import plan_release
from counterpoise.curation.unstated_delta import what_delta_brings
from counterpoise.vault import count_noise
from tests.cli.calls import run

MANY = cp.Schema([cp.Column.boolean(f"answer {number}") for number in range(12)])
FEW = cp.Schema([cp.Column.boolean("ill"), cp.Column.boolean("old")])
TABLE = pd.DataFrame(np.random.default_rng(0).random((60, 12)) < 0.5, columns=MANY.names)
QUICK = {"replicates": 0, "progress": False}


def release(schema=MANY, **options):
    table = TABLE.rename(columns={"answer 0": "ill", "answer 1": "old"})
    asked = QUICK | {"synthesizer": "independent", "weights": "uniform"} | options
    return cp.release(TABLE if schema is MANY else table, schema, 1.0, **asked)


def weigh(**options):
    return cp.weigh(TABLE, TABLE, MANY, 1.0, **(QUICK | {"method": "uniform"} | options))


def said(made, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert made(**options).card["ledger"]["budget"]["delta"] == options.get("delta", 0)
    return [each for each in caught if "delta is 0" in str(each.message)]


@pytest.mark.parametrize("made", [release, weigh])
def test_a_delta_that_nobody_stated_is_said_to_be_zero_where_one_would_help(made):
    [warned] = said(made)
    assert warned.filename == __file__
    assert not said(made, delta=0)
    assert not said(made, delta=1e-6)


def test_the_numbers_are_the_noise_of_all_pairs_of_columns():
    line = what_delta_brings(plan_release(MANY, cp.Budget(1.0)))
    for delta in (0.0, 1e-9):
        budget = cp.Budget(1.0, delta)
        assert f"± {count_noise(budget, budget.whole, 66).deviation:.0f}" in line


def test_nothing_is_said_where_a_delta_would_bring_nothing(tmp_path):
    assert not said(release, schema=FEW)
    drowned = cp.Schema([cp.Column.boolean(f"answer {number}") for number in range(60)])
    assert not what_delta_brings(plan_release(drowned, cp.Budget(1e-9, max_rows_per_person=10**6)))
    account = cp.Account.create(tmp_path / "account.json", 4.0)
    assert not said(release, account=account)


def test_the_command_line_says_it_once_and_not_when_it_is_quiet(tmp_path):
    schema, table = tmp_path / "schema.json", tmp_path / "table.csv"
    MANY.write(schema)
    TABLE.to_csv(table, index=False)
    asked = ("--schema", schema, "--epsilon", 1, "--replicates", 0)
    for command in (("release", table, "--weights", "uniform"), ("weigh", table, table)):
        for options in (("--dry-run",), ("--out", tmp_path / command[0])):
            again = ("--overwrite",) if options[0] == "--out" else ()
            assert run(*command, *asked, *options).count("note: delta is 0") == 1
            for silent in ("--quiet", "--delta=0"):
                assert "delta is 0" not in run(*command, *asked, *options, *again, silent)


@pytest.mark.parametrize("made", [release, weigh])
def test_a_delta_that_protects_nobody_is_said_to(made):
    with pytest.warns(cp.CounterpoiseWarning, match="whoever publishes each row with that chance"):
        made(delta=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error", cp.CounterpoiseWarning)
        made(delta=1e-6)
