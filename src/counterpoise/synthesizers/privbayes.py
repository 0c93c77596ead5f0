"""PrivBayes: a Bayesian network, chosen greedily and privately (Zhang et al. 2017).

Columns join one by one, each with the parents among those before it on which it depends most; then
every column is counted together with its parents. A parent set is allowed only while the counts
stay useful: on average at least `usefulness` times the noise in a cell, for which the number of
rows is paid for first. Dependence is n times the total variation between the joint table and the
product of its margins (their R), whose sensitivity needs no n. The network's counts are fitted by
a maximum-entropy model, so that sampling and marginals are exact. Charge: the number of rows, one
exponential mechanism a column, and one event for all counts; pure budgets use Laplace noise, as
published.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from counterpoise.arguments import real_number, settle, whole_number
from counterpoise.synthesizers.graphical import Columns, Domain, model_sizes
from counterpoise.synthesizers.marginal_model import (
    MOST_CELLS,
    MarginalModel,
    domain_of,
    fit_model,
    measurement_of,
    total_of,
)
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request
from counterpoise.vault import REPLACE, Dependence, Share, Vault, count_noise

# Parts of the share: the number of rows, the choice of the network, the counts.
_PARTS = (0.02, 0.28, 0.70)


@SYNTHESIZERS.register("privbayes")
@dataclass(frozen=True)
class PrivBayes:
    """A greedy network whose tables stay above the noise; theirs is a usefulness of 4."""

    usefulness: float = 4.0
    most_parents: int = 3
    most_cells: int = MOST_CELLS

    def __post_init__(self) -> None:
        settle(
            self,
            usefulness=real_number("usefulness", self.usefulness, "a positive number", above=0),
            most_parents=whole_number("most_parents", self.most_parents),
            most_cells=whole_number("most_cells", self.most_cells),
        )

    def fit(self, vault: Vault, share: Share) -> MarginalModel:
        """Count the rows, choose the network, count its tables; charges the whole share."""
        check_request(vault, share)
        domain = domain_of(vault.schema)
        if vault.budget.neighbours is REPLACE:
            choosing, counting = share.split(*_PARTS[1:])
            rows = float(vault.total().value)
        else:
            sizing, choosing, counting = share.split(*_PARTS)
            rows = max(1.0, float(vault.total(sizing).value))
        if len(domain) == 1:
            counting = Share(choosing.amount + counting.amount, share.pure)
        noise = count_noise(vault.budget, counting, len(domain))
        useful_cells = max(1.0, rows / (self.usefulness * noise.deviation))
        network = self._choose_network(vault, domain, useful_cells, choosing)
        measured = [measurement_of(answer) for answer in vault.counts(network, counting)]
        return fit_model(
            vault.schema, measured, total=total_of(vault, measured), private=vault.private
        )

    def _choose_network(
        self, vault: Vault, domain: Domain, useful_cells: float, share: Share
    ) -> list[Columns]:
        """Cliques of a column and its parents, the column first."""
        rounds = len(domain) - 1
        # Nothing is known of the columns yet, so the first is the first in the schema.
        network: list[Columns] = [(domain.columns[0],)]
        for _ in range(rounds):
            present = tuple(clique[0] for clique in network)
            candidates = [
                (child, *parents)
                for child in domain.columns
                if child not in present
                for parents in self._parent_sets(domain, child, present, useful_cells)
            ]
            sizes = model_sizes(domain, network, candidates)
            small = [c for c, size in zip(candidates, sizes, strict=True) if size < self.most_cells]
            # Where every parent would make the model too large, a column joins by itself.
            small = small or [(child,) for child in domain.columns if child not in present]
            place = vault.select(small, Dependence(), share.part(1 / rounds))
            network.append(small[place])
        return network

    def _parent_sets(
        self, domain: Domain, child: str, present: Columns, useful_cells: float
    ) -> Iterator[Columns]:
        """The largest useful sets of parents; none at all when even one would drown."""
        covered: set[Columns] = set()
        found = False
        for size in range(min(self.most_parents, len(present)), 0, -1):
            for parents in itertools.combinations(present, size):
                if parents not in covered and domain.cells((child, *parents)) <= useful_cells:
                    found = True
                    for smaller in range(1, size):
                        covered.update(itertools.combinations(parents, smaller))
                    yield parents
        if not found:
            yield ()
