"""Post-GAN boosting: scores that are bounded, and mixtures that answer what critics see."""

import numpy as np
import pandas as pd

from counterpoise.networks import Inputs, Network
from counterpoise.schema import Column, Schema
from counterpoise.synthesizers.boosting import CriticScores, mixed
from tests.company import depends_on_company

SCHEMA = Schema([Column.continuous("x", 0, 1), Column.boolean("ill")])


def test_no_row_has_scores_beyond_the_bound():
    network = Network((3, 8, 1))
    critics = 1e3 * np.random.default_rng(0).normal(size=(7, network.size))
    scores = CriticScores(Inputs(SCHEMA), network, critics)
    table = pd.DataFrame({"x": np.linspace(0, 1, 200), "ill": np.arange(200) % 2 == 0})
    norms = np.linalg.norm(scores(SCHEMA.encode(table)), axis=1)
    assert norms.max() <= scores.bound * (1 + 1e-12)
    # It is no larger than it has to be: critics that are sure reach it.
    assert norms.max() > 0.99 * scores.bound


def test_a_mixture_has_the_scores_that_are_wanted_when_some_mixture_has():
    generator = np.random.default_rng(1)
    made = generator.uniform(-0.5, 0.5, size=(6, 3))
    truth = np.array([0.5, 0.3, 0.1, 0.1, 0.0, 0.0])
    found = mixed(made, truth @ made, 0.0)
    before = np.abs(truth @ made - made.mean(axis=0)).max()
    assert np.abs(truth @ made - found @ made).max() < 0.35 * before
    assert abs(found.sum() - 1) < 1e-12 and (found >= 0).all()


def test_what_noise_alone_would_show_is_not_answered():
    made = np.random.default_rng(1).uniform(-0.5, 0.5, size=(6, 3))
    wanted = made.mean(axis=0) + 0.05
    assert np.allclose(mixed(made, wanted, 0.05), 1 / 6)
    assert not np.allclose(mixed(made, wanted, 0.001), 1 / 6)


def test_a_row_has_the_same_scores_to_the_last_bit_in_every_company():
    schema = Schema([Column.continuous(name, 0, 1) for name in "abcdefgh"])
    generator = np.random.default_rng(0)
    network = Network((len(schema), 24, 12, 1))
    critics = generator.normal(size=(5, network.size))
    rows = schema.encode(pd.DataFrame(generator.random((300, 8)), columns=list("abcdefgh")))
    assert depends_on_company(CriticScores(Inputs(schema), network, critics), rows) == 0
