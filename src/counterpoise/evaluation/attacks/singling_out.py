"""Singling out: a description, made from the release, that fits exactly one person of the table.

Univariate predicates are values that one released row has, and the ends of numbers; multivariate
ones describe a released row in three to eight columns drawn at random, and are kept if no other
released row fits. An attacker with weights keeps those that by weight fit about one person of the
population. No two are kept that come from the same released row. What matters is how many fit
exactly one private row, and whether that is more than for people whom the release never saw: if
the K people who fit, of the private table and the hold-out together, were in the private table by
lot, exactly one would be with the probability of a hypergeometric draw, and the mean of it is the
baseline. That is the control at equal size; a small hold-out by itself would be singled out at
another rate because it is small. Random predicates, with every value from another released row,
know the columns but not the people. Reference: Article 29 Data Protection Working Party, opinion
05/2014; Cohen and Nissim (2020) on why a rate by itself means little.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from counterpoise.evaluation.attacks.finding import (
    KNOWLEDGE,
    NO_BASELINE,
    NO_HOLDOUT,
    WITH_WEIGHTS,
    Finding,
    Risk,
    compared,
    percent,
)
from counterpoise.evaluation.attacks.predicates import (
    Predicate,
    describing,
    matches,
    rare_values,
)
from counterpoise.evaluation.attacks.rates import UNKNOWN, Rate
from counterpoise.evaluation.attacks.scene import Scene

NAME = "singling out"
MEASURES = ("univariate predicates", "multivariate predicates", "random predicates")
MOST_PREDICATES = 400
# Descriptions that are tried, and how many columns each has at least and at most.
TRIED, LEAST_COLUMNS, MOST_COLUMNS = 3000, 3, 8
# Released rows that may share a value which by weight one person has.
MOST_SHARED = 5


def singling_out(scene: Scene) -> Finding:
    """How many predicates from the release fit exactly one private row.

    >>> import pandas as pd, counterpoise as cp
    >>> from counterpoise.evaluation.attacks import set_scene
    >>> schema = cp.Schema([cp.Column.integer("age", 0, 99), cp.Column.boolean("ill")])
    >>> rows = pd.DataFrame({"age": range(100), "ill": [False, True] * 50})
    >>> found = singling_out(set_scene(cp.release(rows, schema, 1.0, seed=1), rows[:50], rows[50:]))
    >>> [risk.measure for risk in found.risks[:2]]
    ['univariate predicates', 'multivariate predicates']
    """
    generator = scene.generator("predicates")
    single = rare_values(scene.released, MOST_SHARED)
    single = [single[place] for place in generator.permutation(len(single))[:TRIED]]
    several = [_description(scene, generator) for _ in range(TRIED)]
    # Nobody chooses these by what they fit, so fewer will do.
    random = [_description(scene, generator, at_random=True) for _ in range(MOST_PREDICATES)]
    risks: list[Risk] = []
    blind = [_counts(scene, random)] * len(KNOWLEDGE)
    for columns, by_chance in zip(KNOWLEDGE, blind, strict=True):
        weights = scene.weights_for(columns == WITH_WEIGHTS)
        for measure, tried in zip(MEASURES, (single, several, None), strict=True):
            counts = by_chance if tried is None else _counts(scene, _kept(scene, tried, weights))
            risks.append(_risk(scene, measure, columns, counts, by_chance))
    return Finding(NAME, tuple(risks))


def _risk(scene: Scene, measure: str, columns: str, counts: np.ndarray, blind: np.ndarray) -> Risk:
    """From the private rows and the rows of the hold-out that each predicate fits."""
    if len(counts) == 0:
        return Risk.missing(
            NAME, measure, columns, "Not available: no released row has such a value for itself."
        )
    found = Rate.of(int((counts[:, 0] == 1).sum()), len(counts))
    if scene.holdout is not None:
        baseline = _by_lot(counts, len(scene.private), len(scene.holdout))
        who, mark = "if those who fit were in it by lot, it would be", ""
    elif measure == MEASURES[2]:
        baseline, who, mark = UNKNOWN, "", NO_BASELINE
    else:
        baseline = Rate.of(int((blind[:, 0] == 1).sum()), len(blind))
        who = "of random predicates it is"
        mark = NO_HOLDOUT
    chance = f"; {who} {percent(baseline.value)}: {compared(found, baseline)}" if who else ""
    least, most = _widths(scene)
    kind = {
        MEASURES[0]: "a value that the release shows as unique",
        MEASURES[1]: f"a description in {least} to {most} columns that fits one released row",
        MEASURES[2]: f"a random description in {least} to {most} columns",
    }[measure]
    says = (
        f"In {percent(found.value)} of {len(counts)} tries, {kind} fits exactly one person of the "
        f"private table{chance}.{mark}"
    )
    return Risk.of(NAME, measure, columns, found, baseline, says)


def _by_lot(counts: np.ndarray, private: int, holdout: int) -> Rate:
    """How often exactly one of those who fit is private, if who is private is drawn by lot."""
    fitting = counts.sum(axis=1)
    chances = stats.hypergeom.pmf(1, private + holdout, fitting, private)
    chances = np.where(fitting == 0, 0.0, chances)
    half = 1.96 * float(chances.std()) / np.sqrt(len(chances))
    middle = float(chances.mean())
    return Rate(middle, max(0.0, middle - half), min(1.0, middle + half))


def _widths(scene: Scene) -> tuple[int, int]:
    columns = len(scene.released.schema)
    return min(LEAST_COLUMNS, columns), min(MOST_COLUMNS, columns)


def _description(
    scene: Scene, generator: np.random.Generator, at_random: bool = False
) -> Predicate:
    width = int(generator.integers(*_widths(scene), endpoint=True))
    columns = np.sort(generator.permutation(len(scene.released.schema))[:width])
    rows = generator.integers(0, len(scene.released), width if at_random else 1)
    return describing(scene.released, np.resize(rows, width), columns, scene.middles)


def _kept(scene: Scene, tried: list[Predicate], weights: np.ndarray | None) -> list[Predicate]:
    """The predicates that an attacker takes to fit one person, no two of the same released row."""
    expected: list[tuple[float, Predicate]] = []
    seen: set[int] = set()
    each = scene.population / len(scene.released)
    for predicate in tried:
        rows = matches(predicate, scene.released)
        if not 0 < len(rows) <= (1 if weights is None else MOST_SHARED) or int(rows[0]) in seen:
            continue
        people = 1.0 if weights is None else each * float(weights[rows].sum())
        if abs(people - 1) <= 0.5:
            seen.add(int(rows[0]))
            expected.append((abs(people - 1), predicate))
    # With weights, those that are the nearest to one person; the sort leaves equals as they were.
    expected.sort(key=lambda pair: pair[0])
    return [predicate for _, predicate in expected[:MOST_PREDICATES]]


def _counts(scene: Scene, predicates: list[Predicate]) -> np.ndarray:
    """How many private rows, and how many of the hold-out, each predicate fits."""
    tables = [scene.private, *([] if scene.holdout is None else [scene.holdout])]
    counts = [[len(matches(predicate, table)) for table in tables] for predicate in predicates]
    return np.array(counts, dtype=np.int64).reshape(len(predicates), len(tables))
