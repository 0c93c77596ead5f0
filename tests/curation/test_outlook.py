"""What a plan says before it happens has to be what happens."""

import pytest

import counterpoise as cp
from counterpoise.curation.plan import plan_release, plan_weigh
from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.vault import Budget, Vault
from counterpoise.weights import Uniform
from tests.conftest import make_schema, make_table


def stages(*arguments, rows=10_000, **options):
    found = plan_release(*arguments, **options).describe(rows)
    return {stage.name: stage for stage in found}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_parts_add_up_to_the_whole(delta):
    schema = make_schema().replace(cp.Column.integer("age")).pay("age")
    found = stages(schema, Budget(1.0, delta))
    assert list(found) == ["domain", "number of bins", "synthesizer", "weights", "replicates"]
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
