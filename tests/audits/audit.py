"""Lower bounds on privacy loss from many runs of a query on two neighbouring tables.

A distinguisher sees a statistic of the answer. From the Clopper-Pearson bounds of its error rates
follows, with 95% confidence, the least privacy loss that explains them: for Gaussian mechanisms
the mu of Gaussian DP, for pure ones epsilon, for selection the range of the log-probability
ratios. The threshold is chosen on one half of the runs and judged on the other.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from counterpoise.vault import Budget, Ledger, Vault
from counterpoise.vault.events import DpEvent, GaussianDpEvent, pure_epsilon
from counterpoise.vault.noise import Noise

CONFIDENCE = 0.95


class LastSpend(Ledger):
    """A ledger for thousands of runs: it keeps the last event and adds nothing up."""

    def __init__(self, budget: Budget):
        super().__init__(budget)
        self.event: DpEvent | None = None
        self.events = 0

    def spend(self, query: str, event: DpEvent, delta: float = 0.0) -> None:
        self.event = event
        self.events += 1


class HalvedNoise(Noise):
    """Noise of half the scale that was asked for: the mistake that an audit has to find."""

    def gaussian(self, values, scale):
        return super().gaussian(values, scale / 2)

    def repeated_gaussian(self, values, scale):
        return super().repeated_gaussian(values, scale / 2)

    def laplace(self, values, scale):
        return super().laplace(values, scale / 2)

    def l2_laplace(self, points, scale):
        return super().l2_laplace(points, scale / 2)

    def choose(self, scores, rate):
        return super().choose(scores, 2 * rate)


class Overheard(Noise):
    """Noise that keeps the last noised vector, for queries that publish only part of it."""

    def gaussian(self, values, scale):
        self.heard = super().gaussian(values, scale)
        return self.heard


def audited_vault(
    table, schema, budget: Budget, noise: Noise | None = None, person: str | None = None
) -> Vault:
    """A vault that can be asked without end."""
    vault = Vault(table, schema, budget, person=person)
    vault.ledger = LastSpend(budget)
    vault._noise = noise or Noise()
    return vault


def claimed_mu(event: DpEvent) -> float:
    """The mu of Gaussian DP that a Gaussian event claims: D2 / s."""
    assert isinstance(event, GaussianDpEvent)
    return 1 / event.noise_multiplier


def claimed_epsilon(event: DpEvent) -> float:
    epsilon = pure_epsilon(event)
    assert epsilon is not None
    return epsilon


def collect(ask: Callable[[], float | np.ndarray], runs: int) -> np.ndarray:
    return np.array([ask() for _ in range(runs)])


def mu_lower_bound(without: np.ndarray, having: np.ndarray) -> float:
    """The least mu for which mu-GDP explains how well a threshold tells the two apart."""
    # The middle of two means is hardly chosen: all runs may judge it.
    threshold = _best_threshold(without, having)
    false_alarms = _upper(int((without > threshold).sum()), len(without))
    misses = _upper(int((having <= threshold).sum()), len(having))
    return float(stats.norm.isf(false_alarms) - stats.norm.ppf(misses))


def shift_lower_bound(without: np.ndarray, having: np.ndarray) -> float:
    """The least mu for a statistic that is normal in both worlds: its shift in deviations.

    Sharper than counting errors, and for white-box statistics that are sums of Gaussian noise.
    """
    deviation = math.sqrt((without.var(ddof=1) + having.var(ddof=1)) / 2)
    shift = (having.mean() - without.mean()) / deviation
    runs = len(without)
    error = math.sqrt(2 / runs + shift**2 / (4 * runs))
    return float(shift - stats.norm.ppf(CONFIDENCE) * error)


def epsilon_lower_bound(without: np.ndarray, having: np.ndarray) -> float:
    """The least pure epsilon that explains how often a statistic passes a threshold."""
    candidates = np.unique(np.quantile(having[::2], [0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]))
    threshold = max(
        candidates,
        key=lambda cut: _log_ratio((having[::2] >= cut), (without[::2] >= cut)),
    )
    return _log_ratio(having[1::2] >= threshold, without[1::2] >= threshold)


def range_lower_bound(without: np.ndarray, having: np.ndarray) -> float:
    """The least bounded range that explains how outcome 1 becomes likelier and 0 rarer."""
    up = _log_ratio(having == 1, without == 1, confidence=1 - (1 - CONFIDENCE) / 2)
    down = _log_ratio(without == 0, having == 0, confidence=1 - (1 - CONFIDENCE) / 2)
    return up + down


def _log_ratio(likelier: np.ndarray, rarer: np.ndarray, confidence: float = CONFIDENCE) -> float:
    low = _lower(int(likelier.sum()), len(likelier), confidence)
    high = _upper(int(rarer.sum()), len(rarer), confidence)
    return math.log(low / high) if low > 0 else 0.0


def _upper(hits: int, runs: int, confidence: float = CONFIDENCE) -> float:
    tail = (1 - confidence) / 2  # two bounds are used together
    return float(stats.beta.ppf(1 - tail, hits + 1, runs - hits)) if hits < runs else 1.0


def _lower(hits: int, runs: int, confidence: float = CONFIDENCE) -> float:
    tail = (1 - confidence) / 2
    return float(stats.beta.ppf(tail, hits, runs - hits + 1)) if hits > 0 else 0.0


def _best_threshold(without: np.ndarray, having: np.ndarray) -> float:
    """The middle between the two: best for two shifted normal laws."""
    return float((without.mean() + having.mean()) / 2)
