"""All marginals of a workload, measured at once: the mechanism Gen(d, sigma).

Every clique of the workload, or every set of up to `degree` columns, is counted with the same
noise. Of the many tables that agree with the answers the paper takes an argmin that nobody can
compute; here a maximum-entropy model is fitted to as many of the answers as fit into memory, the
ones with the most information first, which is free because the answers are noised already. The
others say what they know of single columns. Charge: one Gaussian event with
D2 = sqrt(k) for k cliques (discrete Laplace for a pure budget). (Zhou et al. 2024)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from counterpoise.arguments import column_sets, settle, whole_number
from counterpoise.synthesizers.graphical import Columns, Domain, Measurement, fit, model_sizes
from counterpoise.synthesizers.marginal_model import (
    MarginalModel,
    domain_of,
    fit_model,
    measurement_of,
    total_of,
)
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request
from counterpoise.synthesizers.workload import all_cliques, check_workload
from counterpoise.vault import Share, Vault


@SYNTHESIZERS.register("marginals")
@dataclass(frozen=True)
class Marginals:
    """Measure a workload, or all marginals of `degree` columns, in one query."""

    degree: int = 2
    workload: tuple[Columns, ...] | None = None
    most_cells: int = 2_000_000

    def __post_init__(self) -> None:
        workload = self.workload
        settle(
            self,
            degree=whole_number("degree", self.degree),
            workload=None if workload is None else column_sets("workload", workload),
            most_cells=whole_number("most_cells", self.most_cells),
        )

    def fit(self, vault: Vault, share: Share) -> MarginalModel:
        """Count every clique of the workload; charges the whole share."""
        check_request(vault, share)
        domain = domain_of(vault.schema)
        if self.workload is None:
            cliques = all_cliques(domain, self.degree, self.most_cells)
        else:
            cliques = check_workload(domain, self.workload)
        measured = [measurement_of(answer) for answer in vault.counts(cliques, share)]
        total = total_of(vault, measured)
        used = _most_informative(domain, measured, total, self.most_cells)
        return fit_model(vault.schema, used, total=total, private=vault.private)


def _most_informative(
    domain: Domain, measured: list[Measurement], total: float, most_cells: int
) -> list[Measurement]:
    """Answers whose model fits, taken in the order of what they say beyond single columns."""
    singles = [_single(part, column) for part in measured for column in part.columns]
    independent = fit(domain, singles, total=total)
    estimates = independent.marginals([part.columns for part in measured])
    surplus = [
        np.abs(part.values - estimate).sum() - np.sqrt(2 / np.pi) * part.scale * part.values.size
        for part, estimate in zip(measured, estimates, strict=True)
    ]
    chosen: list[Measurement] = []
    left_out: list[Measurement] = []
    for place in np.argsort(surplus)[::-1]:
        part = measured[place]
        [size] = model_sizes(domain, [other.columns for other in chosen], [part.columns])
        (chosen if size <= most_cells else left_out).append(part)
    # What was left out still says something of its single columns.
    return chosen + [_single(part, column) for part in left_out for column in part.columns]


def _single(measurement: Measurement, column: str) -> Measurement:
    """What a measured table says of one of its columns."""
    axis = measurement.columns.index(column)
    others = tuple(place for place in range(measurement.values.ndim) if place != axis)
    summed = measurement.values.size / measurement.values.shape[axis]
    return Measurement(
        (column,), measurement.values.sum(axis=others), measurement.scale * summed**0.5
    )
