"""MST: a tree of two-way marginals, chosen privately (McKenna, Miklau and Sheldon 2021).

Part of the share measures every one-way marginal, part chooses, edge by edge, a spanning tree of
the column pairs that independence describes worst, and part measures those pairs. The paper takes
a third for each; choosing needs less, and gets a tenth here, single columns a half. Charge: two
Gaussian events and one exponential mechanism an edge, in zCDP; it needs delta > 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoise.arguments import instance_of, real_number, settle, whole_number
from counterpoise.errors import BudgetError, MethodError
from counterpoise.synthesizers.graphical import Columns, fit
from counterpoise.synthesizers.marginal_model import (
    MOST_CELLS,
    MarginalModel,
    domain_of,
    fit_model,
    measurement_of,
    total_of,
)
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request
from counterpoise.vault import MarginalError, Share, Vault


@SYNTHESIZERS.register("mst")
@dataclass(frozen=True)
class Mst:
    """A spanning tree of two-way marginals; pairs of more than `most_cells` cells are left out."""

    parts: tuple[float, float, float] = (0.5, 0.1, 0.4)
    most_cells: int = MOST_CELLS

    needs_delta = True

    def __post_init__(self) -> None:
        settle(
            self,
            parts=_checked_parts(self.parts),
            most_cells=whole_number("most_cells", self.most_cells),
        )

    def fit(self, vault: Vault, share: Share) -> MarginalModel:
        """Measure, choose, measure; charges the whole share."""
        check_request(vault, share)
        if share.pure:
            raise BudgetError("mst needs delta > 0: state a delta, or choose 'privbayes'")
        domain = domain_of(vault.schema)
        ones = [(column,) for column in domain.columns]
        if len(domain) == 1:
            first, choosing, second = share, None, None
        else:
            first, choosing, second = share.split(*self.parts)
        measured = [measurement_of(answer) for answer in vault.counts(ones, first)]
        total = total_of(vault, measured)
        if choosing is not None and second is not None:
            independent = fit(domain, measured, total=total)
            pairs: list[Columns] = [
                pair
                for pair in itertools.combinations(domain.columns, 2)
                if domain.cells(pair) <= self.most_cells
            ]
            estimates = dict(zip(pairs, independent.marginals(pairs), strict=True))
            chosen = choose_tree(vault, domain.columns, estimates, choosing)
            measured += [measurement_of(answer) for answer in vault.counts(chosen, second)]
        return fit_model(vault.schema, measured, total=total, private=vault.private)


def _checked_parts(parts: Any) -> tuple[float, float, float]:
    expected = "three positive numbers, for single columns, choosing and pairs"
    found = instance_of("parts", parts, tuple, expected)
    if len(found) != 3:
        raise MethodError(f"parts: expected {expected}")
    first, choosing, second = (real_number("parts", part, expected, above=0) for part in found)
    return first, choosing, second


def choose_tree(
    vault: Vault, columns: Sequence[str], estimates: dict[Columns, np.ndarray], share: Share
) -> list[Columns]:
    """A spanning forest of pairs whose estimates are far off, an edge at a time (Kruskal)."""
    component = {column: column for column in columns}
    rounds = len(columns) - 1
    chosen: list[Columns] = []
    for _ in range(rounds):
        open_pairs = [pair for pair in estimates if component[pair[0]] != component[pair[1]]]
        if not open_pairs:
            break
        score = MarginalError(
            [estimates[pair] for pair in open_pairs],
            np.ones(len(open_pairs)),
            np.zeros(len(open_pairs)),
        )
        pair = open_pairs[vault.select(open_pairs, score, share.part(1 / rounds))]
        chosen.append(pair)
        old, new = component[pair[0]], component[pair[1]]
        component = {c: new if name == old else name for c, name in component.items()}
    return chosen
