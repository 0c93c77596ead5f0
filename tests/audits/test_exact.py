"""Every query's exact law on its worst pair of neighbours, against what the ledger was charged.

No sampling: see `exact`. Each test says how much of the charge its pair reveals. Counts, totals,
bounds and categories reveal all of it, sums and errors of marginals all but rounding, minimisers
98% and more. Dependence reveals 98%, but under replacement 73%: three of the four that are charged
is the most that a replaced row can change it. Quantiles reveal 98%, but the first level under
replacement one half. A factor of two in any sensitivity fails, in either direction.
"""

import math

import numpy as np
import pandas as pd
import pytest

from counterpoise.errors import VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault import Budget, Dependence, LogisticLoss, MarginalError, Share, Vault
from tests.audits.exact import (
    BOTH,
    EVERY,
    GAUSSIAN,
    PURE,
    Listening,
    assert_charged,
    audit,
    budgets,
    claim,
    is_replace,
    listen,
    loss,
    named,
    pair,
)

ALL = 1 - 1e-9

SCHEMA = Schema([Column.categorical("a", ["x", "y", "z"]), Column.categorical("b", ["u", "v"])])
ROWS = pd.DataFrame({"a": ["x", "y", "z", "x"], "b": ["u", "v", "u", "v"]})
PERSON, OTHER = {"a": "y", "b": "u"}, {"a": "z", "b": "v"}


@EVERY
@pytest.mark.parametrize("cliques", [["a"], ["a", "b"], ["a", "b", "ab"]], ids=len)
def test_counts_reveal_all_that_they_are_charged(share, budget, cliques):
    part = audit(
        lambda vault: vault.counts([tuple(clique) for clique in cliques], share),
        pair(ROWS, PERSON, OTHER, budget),
        SCHEMA,
        budget,
    )
    assert_charged(part, ALL)


@pytest.mark.parametrize(
    ("share", "budget"), [(s, b) for s, b in BOTH if not is_replace(b)], ids=str
)
def test_the_total_reveals_all_that_it_is_charged(share, budget):
    tables = pair(ROWS, PERSON, OTHER, budget)
    assert_charged(audit(lambda vault: vault.total(share), tables, SCHEMA, budget), ALL)


class Vectors:
    """Features that are a table of vectors, one a value of `a`."""

    def __init__(self, *vectors):
        self.table = np.array(vectors, dtype=float)
        self.names = tuple(f"f{place}" for place in range(self.table.shape[1]))

    def __call__(self, rows):
        return self.table[rows.codes[:, 0]]


LONG = 1e200

# The person is "y", another "z": as long as the bound, far longer, and not even finite.
OPPOSITE = {
    "as long as the bound": ([0, 0], [3, 4], [-3, -4]),
    "twice as long": ([1, 1], [6, 8], [-6, -8]),
    "beyond the square root of what floats hold": ([0, 0], [LONG, LONG], [-LONG, -LONG]),
    "infinite": ([0, 0], [math.inf, math.inf], [-math.inf, -math.inf]),
    "partly not a number": ([0, 0], [math.nan, 9], [math.nan, -9]),
    "one long number": ([0, 0], [50, 0], [-50, 0]),
    "many long numbers": ([0] * 30, [50] * 30, [-50] * 30),
}


@EVERY
@pytest.mark.parametrize("vectors", OPPOSITE.values(), ids=OPPOSITE)
def test_sums_reveal_all_that_they_are_charged_but_rounding(share, budget, vectors):
    part = audit(
        lambda vault: vault.sums(Vectors(*vectors), 5.0, share),
        pair(ROWS, PERSON, OTHER, budget),
        SCHEMA,
        budget,
    )
    assert_charged(part, 1 - 1e-6)


@pytest.mark.parametrize("bound", [1e-290, 1e-160, 1e-12, 1e12, 1e160, 1e290])
def test_sums_reveal_as_much_in_any_unit(bound):
    """Where the squares of numbers underflow or overflow, clipping holds as well."""
    budget = Budget(50.0, 1e-6, "replace")
    features = Vectors([0, 0], [6 * bound, 8 * bound], [-6 * bound, -8 * bound])
    tables = pair(ROWS, PERSON, OTHER, budget)
    part = audit(lambda vault: vault.sums(features, bound, GAUSSIAN), tables, SCHEMA, budget)
    assert_charged(part, 1 - 1e-6)


def test_rounding_to_the_grid_is_charged_for():
    """Ten thousand features, all rounded upwards: the row gets three millionths longer."""
    size, step = 10_000, 2.0**-24
    features = Vectors(*np.zeros((3, size)))
    features.table[1] = (round(0.01 / step) + 0.501) * step
    bound = float(np.linalg.norm(features.table[1]))
    budget = Budget(50.0, 1e-6)
    tables = pair(ROWS, PERSON, OTHER, budget)
    part = audit(lambda vault: vault.sums(features, bound, GAUSSIAN), tables, SCHEMA, budget)
    assert_charged(part, 1 - 1e-7)


@pytest.mark.parametrize("bound", [0.0, 1e-310, -1.0, math.nan, math.inf, -math.inf])
def test_a_bound_that_bounds_nothing_is_refused_before_it_is_charged(bound):
    with Vault(ROWS, SCHEMA, Budget(1.0, 1e-6), seed=1) as vault:
        with pytest.raises(VaultError, match="bound"):
            vault.sums(Vectors([0], [1], [2]), bound, vault.budget.whole)
        assert vault.ledger.spends == ()


# Rows whose features are zero, so that nothing but the person bends the objective.
NOBODY = pd.DataFrame({"a": ["x"] * 3, "b": ["u"] * 3})

# Two rows nearly opposite, and both far on the wrong side of the centre: see `test_minimise`.
SLANT = 0.05
ALONG = np.array([1.0, 1.0]) / math.sqrt(2)  # all of the L1 norm that an L2 norm allows
ACROSS = np.array([1.0, -1.0]) / math.sqrt(2)
SIDEWAYS = math.sqrt(1 - SLANT**2)
PLANE = (
    [0, 0],
    SLANT * ACROSS + SIDEWAYS * ALONG,
    SLANT * ACROSS - SIDEWAYS * ALONG,
)


class Steep:
    """Three times the logistic loss."""

    slope, steepening = 3.0, 1.0

    def derivatives(self, margins):
        first, second = LogisticLoss().derivatives(margins)
        return 3 * first, 3 * second


LAWS = [
    *(("gaussian", GAUSSIAN, budget) for budget in budgets()),
    *(("laplace", PURE, budget) for budget in budgets(pure=True)),
    *(("l2-laplace", PURE, budget) for budget in budgets(pure=True)),
    # A pure law costs a budget with a delta the same epsilon.
    *(("laplace", GAUSSIAN, budget) for budget in budgets()[:1]),
    *(("l2-laplace", GAUSSIAN, budget) for budget in budgets()[:1]),
]

# A public map that lengthens most the direction in which the worst row moves the minimiser.
OUTPUTS = np.array([[2.0, 2.0], [2.0, 2.0], [0.5, -0.5]])


@pytest.mark.parametrize(("law", "share", "budget"), LAWS, ids=named)
@pytest.mark.parametrize(
    ("options", "least"),
    [
        # (what besides the defaults, how much of the charge is revealed)
        ({}, 0.98),
        ({"loss": Steep()}, 0.98),
        # sqrt(3) is charged for three outputs, of which the worst row moves two.
        ({"outputs": OUTPUTS}, {"laplace": 0.98 * math.sqrt(2 / 3)}),
    ],
    ids=["coefficients", "a steeper loss", "outputs"],
)
def test_minimisers_reveal_nearly_all_that_they_are_charged(law, share, budget, options, least):
    bound = 2.0
    # Too long, and clipped to the bound; no coordinate is beyond it, so the direction stays.
    features = Vectors(*(1.3 * bound * np.array(vector) for vector in PLANE))

    def ask(vault):
        return vault.minimise(
            features,
            bound,
            SCHEMA.encode(ROWS[:1]),
            share,
            rows=1000,
            regularisation=0.01,
            noise=law,
            centre=-400 * ACROSS,
            **options,
        )

    part = audit(ask, pair(NOBODY, PERSON, OTHER, budget), SCHEMA, budget)
    assert_charged(part, least if isinstance(least, float) else least.get(law, 0.98))


def test_a_stated_scale_is_charged_for_what_it_is():
    budget = Budget(50.0, 1e-6)
    features = Vectors(*PLANE)

    def ask(vault):
        return vault.minimise(
            features,
            1.0,
            SCHEMA.encode(ROWS[:1]),
            Share(2.0, pure=False),
            rows=10,
            regularisation=0.1,
            scale=3.0,
            centre=-400 * ACROSS,
        )

    tables = pair(NOBODY, PERSON, OTHER, budget)
    assert listen(ask, tables[0], SCHEMA, budget).answer.scale == 3.0
    assert_charged(audit(ask, tables, SCHEMA, budget), 0.98)


# Several candidates: one whose error the person raises, one whose error the person lowers, and
# others that count for less. Each case is the weights, with the places of the first two.
WEIGHTS = {
    "equal": ([1.0, 1.0, 1.0, 1.0], 0, 1),
    "unequal": ([3.0, 3.0, 0.5, 0.1], 0, 1),
    "one large": ([5.0, 5.0, 0.01, 0.01], 0, 1),
    "all negative": ([-4.0, -4.0, -0.5, -0.1], 0, 1),
    "the largest is negative": ([-4.0, -4.0, 0.5, 0.1], 0, 1),
}


@EVERY
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_marginal_errors_reveal_all_that_they_are_charged(share, budget, weights):
    values, rising, falling = weights
    candidates = [("a",)] * len(values)
    tables = pair(ROWS, PERSON, OTHER, budget)
    exact = np.array([2.0, 1.0, 1.0])  # of ROWS: x, y, z
    estimates = [np.zeros(3) for _ in values]
    # The person comes to "y" and, under replacement, goes from "z".
    estimates[rising] = exact + np.array([0, -9, 9 + 9])
    estimates[falling] = exact + np.array([0, 9, -9])
    score = MarginalError(estimates, np.array(values), np.arange(len(values)))
    part = audit(lambda vault: vault.select(candidates, score, share), tables, SCHEMA, budget)
    assert_charged(part, 1 - 1e-5)


DEPENDENT = Schema([Column.ordinal(name, ["0", "1", "2"]) for name in "abcd"])


def columns(left: np.ndarray, right: np.ndarray) -> pd.DataFrame:
    """Rows whose (a, b) have the counts `left`, and whose (c, d) have the counts `right`."""
    sides = []
    for counts in (left, right):
        cells = [cell for cell in np.ndindex(counts.shape) for _ in range(int(counts[cell]))]
        sides.append(np.array(cells))
    return pd.DataFrame(np.concatenate(sides, axis=1).astype(str), columns=list("abcd"))


def dependence_pair(budget: Budget) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The person makes independent columns depend, and others that depend independent.

    Independence is broken by rows in a new row and column of a table, and mended by rows where
    the product of the margins has missed them. A replacement can do more: it also leaves the
    place where the product expects it, or the one in which it was alone.
    """
    k, m = 60, budget.max_rows_per_person
    u = k * k // m
    if is_replace(budget):
        rest = np.array([[0, k, 0], [0, u, k], [0, 0, 0]])
        person, other = ("2", "0", "0", "2"), ("0", "2", "2", "0")
        rows = columns(rest, rest)
    else:
        expecting = np.array([[u, k, 0], [k, 0, 0], [0, 0, 0]])
        alone = np.zeros((3, 3), dtype=int)
        alone[0, 0] = expecting.sum()
        rows = columns(alone, expecting)
        person = other = ("1", "1", "1", "1")
    return pair(
        rows, dict(zip("abcd", person, strict=True)), dict(zip("abcd", other, strict=True)), budget
    )


@EVERY
def test_dependence_reveals_most_of_what_it_is_charged(share, budget):
    part = audit(
        lambda vault: vault.select([("a", "b"), ("c", "d"), ("a", "c")], Dependence(), share),
        dependence_pair(budget),
        DEPENDENT,
        budget,
    )
    # Replaced rows change the score by three each at most, and four are charged.
    assert_charged(part, 0.7 if is_replace(budget) else 0.94)


def test_no_small_table_is_more_dependent_on_a_row_than_is_charged():
    generator = np.random.default_rng(0)
    score = Dependence()
    charged = score.sensitivity(Budget(1.0))
    largest = 0.0
    for _ in range(3000):
        shape = tuple(generator.integers(1, 4, 2))
        table = generator.poisson(generator.choice([0.2, 1, 8], shape))
        more = table.copy()
        more[tuple(generator.integers(0, shape))] += 1
        before, after = score.values([table, more])
        largest = max(largest, abs(after - before))
    assert 0.6 * charged < largest < charged


UNIT = Schema([Column.continuous("x", 0, 1)])


def numbers(*places: tuple[float, int]) -> pd.DataFrame:
    return pd.DataFrame({"x": np.repeat(*zip(*places, strict=True))})


@pytest.mark.parametrize(("share", "budget"), [b for b in BOTH if not is_replace(b[1])], ids=named)
def test_a_low_quantile_reveals_nearly_all_that_it_is_charged(share, budget):
    """A row to its left: grid points before the target gain 1 - q, those after it lose as much."""
    q = 0.02
    part = audit(
        lambda vault: vault.quantiles("x", [q], share),
        pair(numbers((0.6, 400)), {"x": 0.2}, {"x": 0.2}, budget),
        UNIT,
        budget,
    )
    assert_charged(part, 0.98 * (1 - 1e-5))


@pytest.mark.parametrize(("share", "budget"), [b for b in BOTH if is_replace(b[1])], ids=named)
def test_the_first_level_of_quantiles_reveals_half_under_replacement(share, budget):
    """The number of rows stays, so the target does: points between the two places move by one."""
    part = audit(
        lambda vault: vault.quantiles("x", [0.5], share),
        pair(numbers((0.3, 100), (0.5, 100)), {"x": 0.1}, {"x": 0.9}, budget),
        UNIT,
        budget,
    )
    assert_charged(part, 0.5 - 1e-5)


@EVERY
def test_a_deeper_level_of_quantiles_reveals_nearly_all_that_it_is_charged(share, budget):
    """A replaced row leaves one part and enters another: two choices, for one charge."""
    wanted = [0.01, 0.5, 0.51]  # within either half, a quantile at 0.02
    tables = pair(numbers((0.3, 400), (0.8, 400)), {"x": 0.1}, {"x": 0.6}, budget)
    before, after = (
        listen(
            lambda vault: vault.quantiles("x", wanted, share),
            table,
            UNIT,
            budget,
            Listening(choices=[2048]),
        )
        for table in tables
    )
    assert before.spends == after.spends
    assert len(before.spends) == 2
    losses = [loss(*draws) for draws in zip(before.draws, after.draws, strict=True)]
    first, *second = losses
    assert_charged(first / claim("choice", before.spends[0]), 0.0)
    assert_charged(sum(second) / claim("choice", before.spends[1]), 0.97)


@EVERY
def test_no_level_of_quantiles_reveals_more_than_it_is_charged(share, budget):
    generator = np.random.default_rng(1)
    wanted = [0.1, 0.3, 0.8]
    for _ in range(20):
        rest = pd.DataFrame({"x": generator.beta(0.3, 0.4, 30)})
        person, other = ({"x": place} for place in generator.uniform(size=2))
        cut = int(generator.integers(0, 4097))
        before, after = (
            listen(
                lambda vault: vault.quantiles("x", wanted, share),
                table,
                UNIT,
                budget,
                Listening(choices=[cut]),
            )
            for table in pair(rest, person, other, budget)
        )
        first, *second = (loss(*both) for both in zip(before.draws, after.draws, strict=True))
        assert_charged(first / claim("choice", before.spends[0]), 0.0)
        assert_charged(sum(second) / claim("choice", before.spends[1]), 0.0)


def test_every_level_of_quantiles_is_charged():
    budget = Budget(50.0, 1e-6)
    for count, levels in ((1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)):
        wanted = np.linspace(0, 1, count + 2)[1:-1].tolist()
        heard = listen(
            lambda vault, wanted=wanted: vault.quantiles("x", wanted, GAUSSIAN),
            numbers((0.3, 40), (0.8, 40)),
            UNIT,
            budget,
        )
        assert (len(heard.draws), len(heard.spends)) == (count, levels)
        # All levels together cost the share: rho = epsilon^2 / 8 each.
        spent = sum(claim("choice", spend) ** 2 / 8 for spend in heard.spends)
        assert spent == pytest.approx(GAUSSIAN.amount)
