"""What scores say about membership: the ROC curve, its rare claims, and the epsilon implied.

A membership attack gives every person a score, higher for those it takes to be in the private
table. How well scores separate is the area under the ROC curve, with the interval of DeLong et al.
(1988). Who fears for a few people asks for more: the part of the private rows that are found while
one stranger in a thousand is accused (Carlini et al. 2022). And a release that is
(epsilon, delta)-private keeps true positives below exp(epsilon) false positives + delta, for any
threshold and in both directions (Kairouz et al. 2015), so rates imply an epsilon: the threshold is
chosen on one half of the people, and the rates are bounded on the other, by Clopper and Pearson,
so that the bound is wrong in 5% of the cases. These are cases of choosing people: there is one
release, and how its noise fell is not averaged over. An attack shows that epsilon is at least so
large; it cannot show that it is no larger.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

from counterpoise.evaluation.attacks.finding import Risk, compared, percent
from counterpoise.evaluation.attacks.rates import CONFIDENCE, Rate, clopper_pearson, exactly
from counterpoise.evaluation.attacks.scene import Scene

MEASURES = ("area under the ROC curve", "true positives at 0.1% false positives", "implied epsilon")
RARE = 0.001
# Thresholds among which one is chosen.
THRESHOLDS = 200


def judge_scores(
    scene: Scene, attack: str, columns: str, members: np.ndarray, strangers: np.ndarray
) -> tuple[Risk, ...]:
    """The three risks of the scores of private rows and of strangers."""
    return (
        _area_risk(attack, columns, members, strangers),
        _rare_risk(attack, columns, members, strangers),
        _epsilon_risk(scene, attack, columns, members, strangers),
    )


def roc_curve(members: np.ndarray, strangers: np.ndarray) -> pd.DataFrame:
    """The rates of false and of true positives at every threshold, from none to all.

    >>> roc_curve(np.array([2.0, 1.0]), np.array([1.0, 0.0])).to_numpy().tolist()
    [[0.0, 0.0], [0.0, 0.5], [0.5, 1.0], [1.0, 1.0]]
    """
    thresholds = np.unique(np.concatenate([members, strangers]))[::-1]
    true, false = _positives(members, thresholds), _positives(strangers, thresholds)
    return pd.DataFrame(
        {
            "false_positives": np.concatenate([[0.0], false / len(strangers)]),
            "true_positives": np.concatenate([[0.0], true / len(members)]),
        }
    )


def area(members: np.ndarray, strangers: np.ndarray) -> Rate:
    """The area under the ROC curve, with DeLong's interval.

    >>> area(np.array([2.0, 3.0]), np.array([0.0, 2.0])).value
    0.875
    """
    ranks = stats.rankdata(np.concatenate([members, strangers]))
    # V(x) = P(a stranger's score is below x), with half of the ties, for every member; and so for
    # strangers: the variance of the area is var(V) / m + var(W) / n.
    below = (ranks[: len(members)] - stats.rankdata(members)) / len(strangers)
    above = 1 - (ranks[len(members) :] - stats.rankdata(strangers)) / len(members)
    value = float(below.mean())
    deviation = math.sqrt(below.var(ddof=1) / len(below) + above.var(ddof=1) / len(above))
    half = float(stats.norm.ppf(0.5 + CONFIDENCE / 2)) * deviation
    return Rate(value, max(0.0, value - half), min(1.0, value + half))


def _area_risk(attack: str, columns: str, members: np.ndarray, strangers: np.ndarray) -> Risk:
    found, coin = area(members, strangers), exactly(0.5)
    says = (
        f"Shown one person who is in the private table and one who is not, the attack tells which "
        f"is which in {percent(found.value)} of the cases; a coin does in 50%: "
        f"{compared(found, coin)}."
    )
    return Risk.of(attack, MEASURES[0], columns, found, coin, says)


def _rare_risk(attack: str, columns: str, members: np.ndarray, strangers: np.ndarray) -> Risk:
    # The lowest threshold that at most a thousandth of the strangers reach.
    allowed = int(RARE * len(strangers))
    limit = np.sort(strangers)[::-1][allowed]
    accused = int((strangers > limit).sum())
    found = Rate.of(int((members > limit).sum()), len(members))
    low, high = clopper_pearson(np.array([accused]), len(strangers), (1 - CONFIDENCE) / 2)
    chance = Rate(accused / len(strangers), float(low[0]), float(high[0]))
    few = (
        f" With {len(strangers):,} strangers the baseline is known to be below "
        f"{percent(chance.high)}."
    )
    says = (
        f"The attack finds {percent(found.value)} of the people in the private table while it "
        f"accuses {percent(chance.value)} of those who are not: {compared(found, chance)}.{few}"
    )
    return Risk.of(attack, MEASURES[1], columns, found, chance, says)


def _epsilon_risk(
    scene: Scene, attack: str, columns: str, members: np.ndarray, strangers: np.ndarray
) -> Risk:
    budget = scene.release.card.get("ledger", {}).get("budget", {})
    delta = float(budget.get("delta", 0.0))
    found = implied_epsilon(members, strangers, delta)
    promised = (
        f"; the budget of the release allows {budget['epsilon']:g}" if "epsilon" in budget else ""
    )
    says = (
        f"The attack shows that the release is no more private than epsilon {found.low:.2g} "
        f"(with 95% confidence){promised}. That it shows little proves nothing: "
        "a better attack may show more."
    )
    return Risk.of(attack, MEASURES[2], columns, found, exactly(0.0), says)


def implied_epsilon(members: np.ndarray, strangers: np.ndarray, delta: float = 0.0) -> Rate:
    """The epsilon that the best threshold shows, and the ends between which it is.

    >>> scores = np.arange(1000.0)
    >>> implied_epsilon(scores, scores).low, round(implied_epsilon(scores + 2000, scores).low, 1)
    (0.0, 4.9)
    """
    tail = (1 - CONFIDENCE) / 2
    chosen = np.unique(np.quantile(members, np.linspace(0, 1, THRESHOLDS)))
    chosen = np.unique(
        np.concatenate([chosen, np.quantile(strangers, np.linspace(0, 1, THRESHOLDS))])
    )
    first = _log_ratios(members[::2], strangers[::2], chosen, delta, tail)
    # The threshold and the direction with the largest lower bound; of equals the middle one.
    best = np.argwhere(first[1] == first[1].max())
    direction, place = best[len(best) // 2]
    value, low, high = _log_ratios(members[1::2], strangers[1::2], chosen[[place]], delta, tail)
    ends = (each[direction, 0] for each in (value, low, high))
    return Rate(*(max(0.0, float(end)) for end in ends))


def _log_ratios(
    members: np.ndarray, strangers: np.ndarray, thresholds: np.ndarray, delta: float, tail: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log((TP - delta) / FP), and log((TN - delta) / FN) beside it, with lower and upper bounds."""
    true, false = _positives(members, thresholds), _positives(strangers, thresholds)
    found = []
    for hits, trials, wrong, chances in (
        (true, len(members), false, len(strangers)),
        (len(strangers) - false, len(strangers), len(members) - true, len(members)),
    ):
        hit_low, hit_high = clopper_pearson(hits, trials, tail)
        wrong_low, wrong_high = clopper_pearson(wrong, chances, tail)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Half a case more of each keeps the estimate finite.
            middle = np.log((hits + 0.5) / (trials + 1)) - np.log((wrong + 0.5) / (chances + 1))
            low = np.log(np.maximum(hit_low - delta, 0.0)) - np.log(wrong_high)
            high = np.log(hit_high) - np.log(wrong_low)
        found.append((middle, low, high))
    value, low, high = (np.stack(each) for each in zip(*found, strict=True))
    return value, low, high


def _positives(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """How many scores reach each threshold."""
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")
