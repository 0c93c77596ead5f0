"""The price of privacy: what a release says of the width of its intervals, from itself alone."""

import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.analysis.price import price_of_privacy, said
from tests.analysis.releases import make_release


def bootstrapped(rows, times, replicates=200):
    """A sample with bootstrap replicates, whose deviations are so many times the bootstrap's."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=rows)
    table = pd.DataFrame(
        {"x": x, "y": x + generator.normal(size=rows), "g": generator.choice(["a", "b"], rows)}
    )
    table[["x", "y"]] = table[["x", "y"]].clip(-9, 9)
    counts = generator.multinomial(rows, np.full(rows, 1 / rows), replicates).T
    schema = cp.Schema(
        [
            cp.Column.continuous("x", -9, 9),
            cp.Column.continuous("y", -9, 9),
            cp.Column.categorical("g", ["a", "b"]),
        ]
    )
    card = {
        "population": float(rows),
        "replicates": {"count": replicates, "part": 1 / times},
        "weights": {},
    }
    return cp.Release(table.assign(weight=1.0), schema, card, counts.astype(float))


@pytest.mark.parametrize(("times", "level"), [(1, "fine"), (3, "wide"), (6, "worth little")])
def test_the_price_is_how_many_times_wider_than_a_sample_intervals_are(times, level):
    found = price_of_privacy(bootstrapped(1500, times))
    for kind in ("columns", "groups", "relations", "overall"):
        assert found[kind] == pytest.approx(times, rel=0.15)
    assert found["level"] == level


def test_the_price_is_said_with_the_way_out_where_there_is_one_to_take():
    assert said({}) == said({"price": None}) == ""
    fine, wide = ({"price": price_of_privacy(bootstrapped(500, times))} for times in (1, 3))
    assert said(fine).startswith("fine, about 1")
    assert "narrow them" in said(wide) and "narrow them" not in said(fine)


def test_a_release_without_replicates_or_population_has_no_price():
    assert price_of_privacy(make_release()) is None
    assert price_of_privacy(make_release(replicates=0, population=300.0)) is None


def test_a_release_has_its_price_on_the_card_and_one_that_was_turned_has_none(tmp_path):
    generator = np.random.default_rng(1)
    age, ill = generator.integers(0, 90, 800), generator.random(800) < 0.3
    table = pd.DataFrame({"age": age, "ill": ill})
    schema = cp.Schema([cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")])
    made = cp.release(table, schema, 2.0, 1e-6, rows=400, replicates=10, seed=1, progress=False)
    assert made.card["price"]["overall"] > 0
    loaded = cp.load(made.save(tmp_path / "out"))
    assert loaded.card["price"] == made.card["price"]
    assert said(made.card) in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    turned = made.use_weights().retarget({"ill": {True: 0.5, False: 0.5}})
    assert turned.card["price"] is None
