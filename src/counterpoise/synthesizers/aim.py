"""AIM: adaptive and iterative measurement of a workload's marginals (McKenna et al. 2022).

Each round chooses the marginal that the model so far describes worst, allowing for the noise that
measuring it would carry, measures it, and fits again. When a measurement teaches nothing beyond
its own noise, later rounds get four times the budget. Charge: one Gaussian event and one
exponential mechanism a round, in zCDP, each charged as it happens; it needs delta > 0.

Four things beside the paper. Single columns get a fixed part of the share at the start, not a
round's worth each, which helps small tables. A marginal whose noise would misplace more than a
small part of the rows is not a candidate, and when that leaves none the rounds grow at once, as far
as needed: small tables are measured rarely and well. The last fit is pulled towards independent
columns with likely counts, not towards the uniform. And bounds on the error of every marginal,
measured or not, come with the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from counterpoise.arguments import column_name, column_sets, real_number, settle, whole_number
from counterpoise.errors import BudgetError
from counterpoise.formulas.questions import Question, read_questions
from counterpoise.synthesizers.graphical import (
    Columns,
    Domain,
    GraphicalModel,
    Measurement,
    Prior,
    fit,
    model_sizes,
)
from counterpoise.synthesizers.marginal_model import (
    MarginalModel,
    domain_of,
    measurement_of,
    total_of,
)
from counterpoise.synthesizers.protocol import SYNTHESIZERS, check_request
from counterpoise.synthesizers.workload import (
    all_cliques,
    candidate_weights,
    check_workload,
    question_cliques,
)
from counterpoise.vault import MarginalError, Share, Vault

# The part of a round that measures; the rest chooses.
MEASURING = 0.9

# E|z| of a standard normal: what noise adds to an L1 error, a cell.
NOISE_A_CELL = math.sqrt(2 / math.pi)

# A table is useful when its noise would misplace at most this part of the rows (total variation).
# Wide columns come last then. Joined early to a target alone, they look independent of its other
# causes, and a classifier trained on the sample counts the same evidence twice.
USEFUL_NOISE = 0.25

# A fit between rounds serves the next choice alone, and may end this part of the loss above the
# best one; the last fit is as close as any.
ROUND_TOLERANCE = 3e-2


@SYNTHESIZERS.register("aim")
@dataclass(frozen=True)
class Aim:
    """Adaptive measurement of all marginals of up to `degree` columns, or of a given workload.

    Marginals with the `target` column count three times, and so do those with two columns that one
    of the `questions` joins; a given workload takes these in. `first_part` of the share measures
    single columns. `rounds` is the number of rounds that the budget is planned for, 16 a column by
    default. `most_cells` limits the model, and with it the time that a table of many rows takes.
    """

    degree: int = 3
    target: str | None = None
    workload: tuple[Columns, ...] | None = None
    rounds: int | None = None
    first_part: float = 0.2
    most_cells: int = 2_000_000
    questions: tuple[str, ...] = ()

    needs_delta = True

    def __post_init__(self) -> None:
        target, workload, part = self.target, self.workload, self.first_part
        settle(
            self,
            degree=whole_number("degree", self.degree),
            target=None if target is None else column_name("target", target),
            workload=None if workload is None else column_sets("workload", workload),
            rounds=None if self.rounds is None else whole_number("rounds", self.rounds),
            first_part=real_number(
                "first_part", part, "a number between 0 and 1", above=0, below=1
            ),
            most_cells=whole_number("most_cells", self.most_cells),
            questions=read_questions(self.questions),
        )

    def fit(self, vault: Vault, share: Share) -> AimModel:
        """Measure round by round until the share is spent."""
        check_request(vault, share)
        if share.pure:
            raise BudgetError("aim needs delta > 0: state a delta, or choose 'privbayes'")
        domain = domain_of(vault.schema)
        if self.target is not None:
            vault.schema.index(self.target)
        read_questions(self.questions, vault.schema)
        if self.workload is not None:
            check_workload(domain, self.workload)
        progress = _begin(vault, domain, share, self)
        total = total_of(vault, progress.measured)
        weights = self._candidates(domain, total, vault, share)
        graph = fit(domain, progress.measured, total=total)
        last: Round | None = None
        while progress.left > 1e-9 * share.amount:
            progress = _with_budget_for_a_round(progress)
            progress, useful = _useful(progress, vault, domain, weights, total)
            candidates = _small_enough(domain, progress, useful, share, self.most_cells)
            last, measurement = _measure_worst(vault, graph, candidates, weights, progress)
            measured = (*progress.measured, measurement)
            before = graph
            graph = fit(domain, measured, total=total, warm_start=graph, tolerance=ROUND_TOLERANCE)
            left = progress.left - progress.round_amount
            progress = replace(progress, measured=measured, left=left)
            if _taught_little(before, graph, measurement):
                progress = _grow(progress)
        graph = fit(domain, progress.measured, total=total, warm_start=graph, prior=AimModel.prior)
        return AimModel(vault.schema, graph, progress.measured, vault.private, last)

    def _candidates(
        self, domain: Domain, total: float, vault: Vault, share: Share
    ) -> dict[Columns, float]:
        # Even with the whole share a larger table would hold more noise than rows.
        scale = share.gaussian_scale(vault.budget.count_sensitivity()[0])
        most = min(self.most_cells, max(2 * total / (NOISE_A_CELL * scale), 1.0))
        joined = [Question.read(text).joined(vault.schema) for text in self.questions]
        workload: Sequence[Columns]
        if self.workload is not None:
            asked = question_cliques(domain, joined, self.degree, most)
            workload = check_workload(domain, (*self.workload, *asked))
        else:
            workload = all_cliques(domain, self.degree, most)
        return {
            clique: weight
            for clique, weight in candidate_weights(domain, workload, self.target, joined).items()
            if domain.cells(clique) <= most or len(clique) == 1
        }


@dataclass(frozen=True, eq=False)
class Progress:
    """Measured tables so far, the rho that is left, and the rho of the next round."""

    measured: tuple[Measurement, ...]
    left: float
    round_amount: float


@dataclass(frozen=True, eq=False)
class Round:
    """What a round chose, for the bounds on what it did not choose."""

    before: GraphicalModel
    chosen: Columns
    error: float  # norm1(estimate before - noisy answer)
    scale: float
    epsilon: float
    weights: dict[Columns, float]  # of its candidates
    largest_weight: float  # the sensitivity of its scores


@dataclass(frozen=True, eq=False)
class AimModel(MarginalModel):
    """A marginal model that also bounds how far its marginals are from the private ones."""

    last_round: Round | None = None

    prior: ClassVar[Prior] = "columns"

    def error_bound(self, columns: Sequence[str], confidence: float = 0.95) -> float | None:
        """A bound on norm1(private marginal - model's), at the stated confidence, from noise alone.

        For columns within a measured clique it follows from the noise; for the other candidates of
        the last round from their not having been chosen; None where neither applies.
        (McKenna et al. 2022, section 5)
        """
        expected = "a number between 0 and 1"
        confidence = real_number("confidence", confidence, expected, above=0, below=1)
        [names] = column_sets("columns", (columns,))
        clique = self.graph.domain.canonical(names)
        deviation = self._standard_error(clique)
        if deviation is not None:
            return self._measured_bound(clique, deviation, 1 - confidence)
        if self.last_round is not None and clique in self.last_round.weights:
            return self._unmeasured_bound(clique, self.last_round, 1 - confidence)
        return None

    def _measured_bound(self, clique: Columns, deviation: float, failure: float) -> float:
        # norm1(noise) <= sqrt(2 log 2) s n + lambda s sqrt(2 n), except with chance exp(-lambda^2)
        answer = self._pooled(clique, deviation)
        cells = answer.size
        chance = math.sqrt(math.log(1 / failure))
        noise = math.sqrt(2 * math.log(2)) * cells + chance * math.sqrt(2 * cells)
        return float(np.abs(self.graph.marginal(clique) - answer).sum() + deviation * noise)

    def _unmeasured_bound(self, clique: Columns, last: Round, failure: float) -> float:
        # Theorem 4 there, with w_chosen also on its noise term (the printed one lacks it), half of
        # the failure on each of its two events: exp(-l1^2/2) and exp(-l2).
        from_noise = math.sqrt(2 * math.log(2 / failure))
        from_choice = math.log(2 / failure)
        domain = self.graph.domain
        cells, chosen_cells = domain.cells(clique), domain.cells(last.chosen)
        weight, chosen_weight = last.weights[clique], last.weights[last.chosen]
        slack = 2 * last.largest_weight / last.epsilon
        bound = (
            chosen_weight * (last.error + from_noise * last.scale * math.sqrt(chosen_cells))
            + NOISE_A_CELL * last.scale * (weight * cells - chosen_weight * chosen_cells)
            + slack * (math.log(len(last.weights)) + from_choice)
        ) / weight
        # That was about the model before the last round.
        moved = np.abs(self.graph.marginal(clique) - last.before.marginal(clique)).sum()
        return float(bound + moved)

    def _pooled(self, clique: Columns, deviation: float) -> np.ndarray:
        """The inverse-variance mean of the measured tables that contain the columns."""
        shape = self.graph.domain.shape(clique)
        pooled = np.zeros(shape)
        for measurement in self.measured:
            if not set(clique) <= set(measurement.columns):
                continue
            others = tuple(
                axis for axis, name in enumerate(measurement.columns) if name not in clique
            )
            kept = [name for name in measurement.columns if name in clique]
            table = measurement.values.sum(axis=others)
            table = table.transpose([kept.index(name) for name in clique])
            summed = measurement.values.size / table.size
            pooled += table * deviation**2 / (measurement.scale**2 * summed)
        return pooled


def _begin(vault: Vault, domain: Domain, share: Share, method: Aim) -> Progress:
    """Measure every one-way marginal, and plan the rounds."""
    columns = [(column,) for column in domain.columns]
    first = share.part(method.first_part)
    measured = tuple(measurement_of(answer) for answer in vault.counts(columns, first))
    rounds = method.rounds or 16 * len(domain)
    return Progress(measured, share.amount - first.amount, share.amount / rounds)


def _measuring(progress: Progress) -> Share:
    """The part of the next round that measures."""
    return Share(MEASURING * progress.round_amount, pure=False)


def _choosing(progress: Progress) -> Share:
    """The part of the next round that chooses."""
    return Share((1 - MEASURING) * progress.round_amount, pure=False)


def _with_budget_for_a_round(progress: Progress) -> Progress:
    """The last round takes all that is left, when two more would not fit."""
    if progress.left < 2 * progress.round_amount:
        return replace(progress, round_amount=progress.left * (1 - 1e-12))
    return progress


def _grow(progress: Progress, times: float = 4.0) -> Progress:
    """Larger rounds, up to all that is left; four times the budget is half the noise."""
    return replace(
        progress, round_amount=min(times * progress.round_amount, progress.left * (1 - 1e-12))
    )


def _useful(
    progress: Progress,
    vault: Vault,
    domain: Domain,
    weights: dict[Columns, float],
    total: float,
) -> tuple[Progress, list[Columns]]:
    """The candidates that are useful at the noise of the next round, which may have to grow.

    When only single columns are, which are known already, it grows until the smallest other set is
    useful too, or until what is left holds as many such rounds as there are columns, if noise is
    then below all there could be to learn; the smallest sets have to do with that noise.
    """
    sensitivity = vault.budget.count_sensitivity()[0]

    def noise(amount: float) -> float:
        # A cell's part of TV = 1/2 sqrt(2/pi) s cells / n.
        scale = Share(MEASURING * amount, pure=False).gaussian_scale(sensitivity)
        return NOISE_A_CELL / 2 * scale / total

    most = USEFUL_NOISE
    cells = {clique: domain.cells(clique) for clique in weights}
    smallest = min((cells[clique] for clique in weights if len(clique) > 1), default=0)
    now = smallest * noise(progress.round_amount)
    if now > most and smallest * noise(progress.left) < 1:
        # Noise falls with the square root of the budget: (now / noise)^2 times as much for `noise`.
        a_column = progress.left / len(domain) / progress.round_amount
        times = min((now / most) ** 2, max(now**2, a_column, 1.0))
        progress = _with_budget_for_a_round(_grow(progress, times))
        most = max(most, smallest * noise(progress.round_amount)) * (1 + 1e-9)
    a_cell = noise(progress.round_amount)
    useful = [clique for clique in weights if a_cell * cells[clique] <= most]
    return progress, useful or [clique for clique in weights if len(clique) == 1]


def _small_enough(
    domain: Domain, progress: Progress, candidates: list[Columns], share: Share, most_cells: int
) -> list[Columns]:
    """The candidates that keep the model within its size, which grows with the budget spent.

    Every round sizes them all. What was too large may fit later, and not only because the limit
    grows: the greedy order may do better on a graph with more edges.
    """
    limit = most_cells * (1 - (progress.left - progress.round_amount) / share.amount)
    present = [measurement.columns for measurement in progress.measured]
    sizes = model_sizes(domain, present, candidates)
    small = [c for c, size in zip(candidates, sizes, strict=True) if size <= limit]
    return small or [clique for clique in candidates if len(clique) == 1] or [present[0]]


def _measure_worst(
    vault: Vault,
    graph: GraphicalModel,
    candidates: list[Columns],
    weights: dict[Columns, float],
    progress: Progress,
) -> tuple[Round, Measurement]:
    """Choose the candidate that the model describes worst, and measure it."""
    scale = _measuring(progress).gaussian_scale(vault.budget.count_sensitivity()[0])
    # Thousands of tables, most of them across cliques; noise hides far more than a millionth.
    estimates = graph.marginals(candidates, is_rough=True)
    score = MarginalError(
        estimates,
        np.array([weights[clique] for clique in candidates]),
        np.array([NOISE_A_CELL * scale * estimate.size for estimate in estimates]),
    )
    place = vault.select(candidates, score, _choosing(progress))
    [answer] = vault.counts([candidates[place]], _measuring(progress))
    round_ = Round(
        before=graph,
        chosen=candidates[place],
        error=float(np.abs(answer.values - estimates[place]).sum()),
        scale=scale,
        epsilon=_choosing(progress).selection_epsilon,
        weights={clique: weights[clique] for clique in candidates},
        largest_weight=score.sensitivity(vault.budget),
    )
    return round_, measurement_of(answer)


def _taught_little(before: GraphicalModel, after: GraphicalModel, measurement: Measurement) -> bool:
    """Whether the model moved by no more than the noise of what was measured."""
    moved = np.abs(after.marginal(measurement.columns) - before.marginal(measurement.columns)).sum()
    return bool(moved <= NOISE_A_CELL * measurement.scale * measurement.values.size)
