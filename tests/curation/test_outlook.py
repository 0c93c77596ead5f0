"""What a plan says before it happens has to be what happens."""

import json

import pytest

import counterpoise as cp
from counterpoise.curation.plan import plan_release, plan_weigh
from counterpoise.errors import BudgetError
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Uniform
from tests.cli.calls import run
from tests.conftest import make_schema, make_table


def stages(*arguments, rows=10_000, **options):
    found = plan_release(*arguments, **options).describe(rows)
    return {stage.name: stage for stage in found}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_parts_add_up_to_the_whole(delta):
    schema = make_schema().replace(cp.Column.integer("age")).pay("age")
    found = stages(schema, Budget(1.0, delta))
    assert list(found) == ["domain", "cells", "synthesizer", "weights", "replicates"]
    assert sum(stage.part for stage in found.values()) == pytest.approx(1.0)
    assert found["replicates"].share is None
    law = "Gaussian" if delta else "Laplace"
    assert all(law in found[name].asks for name in ("domain", "synthesizer", "weights"))


@pytest.mark.parametrize("method", ["independent", "mst", "aim", "privbayes", "marginals"])
@pytest.mark.parametrize("budget", [Budget(1.0, 1e-6), Budget(2.0, 1e-6, "replace", 2)], ids=str)
def test_the_stated_noise_on_a_count_is_that_of_the_counts(method, budget):
    schema = make_schema().with_bins(8)
    stage = stages(schema, budget, method, "uniform")["synthesizer"]
    stated = float(stage.noise.split("± ")[1])
    asked = []

    class Watched(Vault):
        def counts(self, cliques, share):
            answers = super().counts(cliques, share)
            asked.append(answers[0].deviation)
            return answers

    with Watched(make_table(300), schema, budget) as vault:
        SYNTHESIZERS.make(method).fit(vault, budget.whole)
    assert stated == pytest.approx(asked[0], rel=0.06)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_stated_noise_on_a_mean_is_close_to_that_of_the_weights(delta):
    table, schema = make_table(2000), make_schema().with_bins(8)
    stage = stages(schema, Budget(2.0, delta), "independent", rows=2000)["weights"]
    stated = float(stage.noise.split("± ")[1])
    release = cp.release(table, schema, 2.0, delta, synthesizer="independent", replicates=0, seed=0)
    assert stated == pytest.approx(release.models.weights.noise_scale, rel=0.6)


def test_more_rows_take_longer_and_more_memory():
    small, large = (stages(make_schema(), Budget(1.0, 1e-6), rows=rows) for rows in (10**3, 10**6))
    for name in ("synthesizer", "weights", "replicates"):
        assert 0 < small[name].seconds < large[name].seconds
        assert 0 < small[name].bytes < large[name].bytes


def measured_schema(numbers, integers, categories):
    """The public columns of the tables in `benchmarks/outlook.py`, on which was measured."""
    columns = [cp.Column.continuous(f"number{place}", 0, 1000) for place in range(numbers)]
    columns += [cp.Column.integer(f"integer{place}", 1, 16) for place in range(integers)]
    for place, size in enumerate(categories):
        listed = [f"c{code}" for code in range(size)]
        columns.append(cp.Column.categorical(f"category{place}", listed))
    return cp.Schema(columns)


# Processor seconds and megabytes of the synthesizer, the weights and the replicates.
MEASURED = {
    (5_000, 3, 1, (2, 3, 5, 8)): ((0.31, 250), (0.34, 277), (0.63, 283)),
    (20_000, 4, 2, (2, 2, 4, 6, 10, 20)): ((0.85, 271), (3.8, 499), (2.3, 422)),
    (48_842, 4, 1, (2, 2, 5, 6, 7, 9, 14, 16, 16, 42)): ((1.6, 330), (3.9, 555), (3.8, 574)),
    (50_000, 6, 2, (2, 2, 3, 4, 5, 8, 12, 20, 60, 150)): ((2.6, 350), (4.7, 615), (5.1, 607)),
    (200_000, 3, 1, (2, 3, 5, 8)): ((2.2, 426), (2.5, 521), (6.2, 714)),
}


@pytest.mark.parametrize("table", MEASURED, ids=lambda table: f"{table[0]} rows")
def test_time_and_memory_are_what_was_measured_within_a_factor_of_two(table):
    rows, *columns = table
    found = stages(measured_schema(*columns), Budget(1.0, 1e-9), rows=rows)
    for name, (seconds, megabytes) in zip(
        ("synthesizer", "weights", "replicates"), MEASURED[table], strict=True
    ):
        assert 0.5 < found[name].seconds / seconds < 2, name
        assert 0.5 < found[name].bytes / 1e6 / megabytes < 2, name


def test_tables_that_drown_in_noise_take_no_time():
    """A pair of 3,000 and 2,000 categories has six million cells, and is never counted."""
    columns = measured_schema(2, 0, (2, 3)), measured_schema(2, 0, (2, 3, 3000, 2000))
    few, many = (stages(schema, Budget(1.0, 1e-9), "aim")["synthesizer"] for schema in columns)
    assert many.seconds < 10 * few.seconds
    assert many.bytes < 2 * few.bytes


def test_replicates_of_weights_that_move_nothing_take_little():
    schema = make_schema()
    moved = stages(schema, Budget(1.0, 1e-6), rows=10**5)["replicates"]
    still = stages(schema, Budget(1.0, 1e-6), weights="uniform", rows=10**5)["replicates"]
    assert 0 < still.seconds < moved.seconds
    assert 0 < still.bytes < moved.bytes


class Strange(Uniform):
    """Weights that nobody knows."""

    is_free = False


def test_a_method_that_is_not_known_is_given_no_numbers():
    stage = stages(make_schema(), Budget(1.0, 1e-6), weights=Strange())["weights"]
    assert (stage.noise, stage.seconds, stage.bytes) == ("", None, None)


def test_a_schema_that_is_still_open_is_guessed_at():
    schema = make_schema().replace(cp.Column.categorical("sex")).pay("sex")
    schema = schema.replace(cp.Column.date("age")).pay("age")
    found = stages(schema, Budget(1.0, 1e-6))
    assert found["synthesizer"].seconds > 0
    assert "±" in found["weights"].noise


def test_every_synthesizer_is_described():
    for method in SYNTHESIZERS:
        stage = stages(make_schema(), Budget(1.0, 1e-6), method)["synthesizer"]
        assert (stage.method, stage.seconds is None, stage.noise == "") == (method, False, False)
        assert "the method asks" not in stage.asks


def test_weights_alone_are_one_stage_with_all_of_the_budget():
    found = plan_weigh(make_schema(), Budget(1.0, 1e-6)).describe(replicates=0)
    assert [(stage.name, round(stage.part, 6)) for stage in found] == [("weights", 1.0)]


def test_noise_is_that_of_the_rows_that_may_be_kept():
    """No more than persons times rows a person; without a guess of persons, of every row."""

    def noise(*guesses, rows=1):
        budget = Budget(1.0, 1e-9, max_rows_per_person=rows)
        plan = plan_release(make_schema(), budget, person="who", split=0.2)
        return next(stage for stage in plan.describe(*guesses) if stage.name == "weights").noise

    assert noise(336_776, 0, 4_044) == noise(4_044, 0) == noise(None, 0, 4_044)
    assert "a standardised mean of 4,044 rows" in noise(336_776, 0, 4_044)
    assert "a standardised mean of 80,880 rows" in noise(336_776, 0, 4_044, rows=20)
    assert "a standardised mean of 5,000 rows" in noise(5_000, 0, 4_044, rows=20)
    assert noise(336_776, 0) == noise(336_776, 0, 336_776)
    with pytest.raises(BudgetError, match="private_persons: rows are only left out where person"):
        plan_release(make_schema(), Budget(1.0)).describe(private_persons=5)


def test_the_dry_run_says_how_many_rows_it_counts_on(tmp_path):
    make_schema().write(tmp_path / "schema.json")
    asked = ["release", "nowhere.csv", "--schema", tmp_path / "schema.json", "--epsilon", 1]
    asked += ["--dry-run", "--private-rows", 336_776]
    person = ["--person", "who", "--max-rows-per-person", 20]
    assert "roughly, for 336,776 private rows)" in run(*asked)
    said = run(*asked, *person)
    assert "for 336,776 private rows, as if every one of them were kept; --private-persons" in said
    said = run(*asked, *person, "--private-persons", 4_044)
    assert "for the 80,880 of 336,776 private rows that may be kept, at most 20 of each of" in said
    found = json.loads(run(*asked, *person, "--private-persons", 4_044, "--json"))
    assert found["private_rows_assumed"] == 336_776 and found["private_rows_kept"] == 80_880
    assert "--person says whose" in run(*asked, "--private-persons", 4_044, code=2)
