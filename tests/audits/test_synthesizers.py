"""Whole synthesizers, audited: all their answers together show no more than the budget claims.

White box, on a table so small that every measurement sees the person: the statistic is the
log-likelihood ratio of all noised tables that a model was fitted to. What selection may reveal is
claimed but not used, so the loss that can be shown is the claim times the root of the part of the
budget that measures.
"""

import math

import numpy as np
import pandas as pd
import pytest

from counterpoise.schema import Column, Schema
from counterpoise.synthesizers import Aim, Histogram, Independent, Mst, PrivBayes
from counterpoise.vault import Budget, Share
from tests.audits.audit import (
    HalvedNoise,
    audited_vault,
    collect,
    mu_lower_bound,
    shift_lower_bound,
)

SCHEMA = Schema([Column.boolean("a"), Column.boolean("b")])
# A person with four rows: the noise is wide enough for discrete to be like continuous.
BUDGET = Budget(1.0, 1e-6, max_rows_per_person=4)
SHARE = Share(2.0, pure=False)
CLAIM = math.sqrt(2 * SHARE.amount)  # rho-zCDP by Gaussian noise alone is mu = sqrt(2 rho)
RUNS = 1200

# With the part of the budget that goes to measurements.
METHODS = {
    "independent": (Independent(), 1.0),
    "histogram": (Histogram(), 1.0),
    "mst": (Mst(), 0.9),
    "aim": (Aim(rounds=6), 0.93),
    "privbayes": (PrivBayes(), 0.7),
}


def audit(method, noise=None) -> tuple[np.ndarray, np.ndarray]:
    rows = pd.DataFrame({"a": [True, False] * 10, "b": [True, True, False, False] * 5})
    person = pd.DataFrame({"a": [True] * 4, "b": [False] * 4})
    tables = rows, pd.concat([rows, person])
    vaults = [audited_vault(table, SCHEMA, BUDGET, noise) for table in tables]

    def statistic(vault) -> float:
        kept = []
        ask = type(vault).counts

        def counts(cliques, share):
            answers = ask(vault, cliques, share)
            kept.extend(answers)
            return answers

        vault.counts = counts
        method.fit(vault, SHARE)
        return sum(likelihood_ratio(answer) for answer in kept)

    def likelihood_ratio(answer) -> float:
        [before], [after] = (vault._storage.counts([answer.columns]) for vault in vaults)
        # Gaussian noise: the middle between the two worlds is as likely in either.
        middle, moved = (before + after) / 2, after - before
        return float(((answer.values - middle) * moved).sum() / answer.deviation**2)

    without, having = (collect(lambda v=v: statistic(v), RUNS) for v in vaults)
    return without, having


@pytest.mark.parametrize("name", METHODS)
def test_a_synthesizer_reveals_what_it_claims_and_no_more(name):
    method, measuring = METHODS[name]
    without, having = audit(method)
    assert mu_lower_bound(without, having) <= 1.1 * CLAIM
    shown = shift_lower_bound(without, having)
    assert 0.85 * math.sqrt(measuring) * CLAIM <= shown <= 1.1 * CLAIM


@pytest.mark.parametrize("name", ["mst", "aim"])
def test_the_audit_of_a_synthesizer_finds_noise_of_half_the_scale(name):
    without, having = audit(METHODS[name][0], HalvedNoise())
    assert shift_lower_bound(without, having) > 1.5 * CLAIM
    assert mu_lower_bound(without, having) > 1.2 * CLAIM
