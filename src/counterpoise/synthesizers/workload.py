"""Workloads: the marginals that an analyst will care about, and how much each candidate helps.

A workload is a set of cliques with weights. Measuring a clique r helps a workload clique s in
proportion to the columns they share, so r weighs w_r = sum_s c_s |r & s| (McKenna et al. 2022,
AIM, section 4). Candidates are all subsets of the workload's cliques.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from counterpoise.errors import MethodError
from counterpoise.synthesizers.graphical import Columns, Domain

# Every round of an adaptive method looks at all candidates.
MOST_CANDIDATES = 20_000

# Weight of a workload clique that contains the target column, when there is one, or two columns
# that a question joins.
TARGET_WEIGHT = 3.0


def all_cliques(domain: Domain, degree: int, most_cells: float) -> list[Columns]:
    """All sets of `degree` columns whose table has at most `most_cells` cells.

    A set that is too large is replaced by its subsets that are not; so are all sets of three or
    more columns when there would be more than `MOST_CANDIDATES` of them.

    >>> all_cliques(Domain(("a", "b", "c"), (2, 2, 50)), 2, most_cells=10)
    [('a', 'b'), ('c',)]
    """
    if degree < 1:
        raise MethodError(f"degree: expected a whole number from 1, not {degree!r}")
    found: dict[Columns, None] = {}
    covered: set[Columns] = set()
    smallest = sorted(domain.sizes)
    for size in range(min(degree, len(domain)), 0, -1):
        too_many = size > 2 and math.comb(len(domain), size) > MOST_CANDIDATES
        if size > 1 and (too_many or math.prod(smallest[:size]) > most_cells):
            continue
        for clique in itertools.combinations(domain.columns, size):
            fits = domain.cells(clique) <= most_cells or size == 1
            if fits and clique not in covered:
                found[clique] = None
                for smaller in range(1, size):
                    covered.update(itertools.combinations(clique, smaller))
    return list(found)


def check_workload(domain: Domain, workload: Iterable[Sequence[str]]) -> list[Columns]:
    """The cliques of a workload, each once, in the order of the domain's columns."""
    cliques = list(dict.fromkeys(domain.canonical(clique) for clique in workload))
    if not cliques or () in cliques:
        raise MethodError("workload: expected at least one set of columns, and none empty")
    return cliques


def question_cliques(
    domain: Domain, joined: Iterable[Sequence[str]], degree: int, most_cells: float
) -> list[Columns]:
    """All sets of up to `degree` columns that a question joins, if they are small enough.

    >>> domain = Domain(("a", "b", "c"), (2, 2, 50))
    >>> question_cliques(domain, [("a", "b", "c")], 3, most_cells=100)
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    found: dict[Columns, None] = {}
    for columns in joined:
        own = domain.canonical(columns)
        for size in range(2, min(degree, len(own)) + 1):
            found |= dict.fromkeys(itertools.combinations(own, size))
    return [clique for clique in found if domain.cells(clique) <= most_cells]


def candidate_weights(
    domain: Domain,
    workload: Iterable[Sequence[str]],
    target: str | None = None,
    joined: Sequence[Sequence[str]] = (),
) -> dict[Columns, float]:
    """Every subset of the workload's cliques, with its weight, largest subsets first.

    `joined` are the sets of columns that questions join.
    """
    cliques = [domain.canonical(clique) for clique in workload]

    def is_wanted(clique: Columns) -> bool:
        has_target = target is not None and target in clique
        return has_target or any(len({*clique} & {*columns}) > 1 for columns in joined)

    importance = {clique: TARGET_WEIGHT if is_wanted(clique) else 1.0 for clique in cliques}
    # w_r = sum_s c_s |r & s| = sum over the columns of r of the importance of the s they are in.
    column_weight = {
        column: math.fsum(weight for clique, weight in importance.items() if column in clique)
        for column in domain.columns
    }
    subsets = {
        subset
        for clique in importance
        for size in range(1, len(clique) + 1)
        for subset in itertools.combinations(clique, size)
    }
    ordered = sorted(subsets, key=lambda subset: (-len(subset), subset))
    return {clique: math.fsum(column_weight[column] for column in clique) for clique in ordered}
