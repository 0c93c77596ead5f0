"""A moment model: noisy differences of feature means, and the tilt that makes up for them.

What `moments` has asked for and shrunk is turned into weights here: the tilt of the synthetic rows
that is closest to none and reaches the believed differences, as softly as leaves enough rows
effective; and into replicate weights, by the same steps with fresh noise. All of it is
post-processing, and the model can be kept as arrays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.schema import Coded, Schema
from counterpoise.weights.calibration import calibrate, effective_fraction, mean_and_fraction
from counterpoise.weights.features import Features
from counterpoise.weights.many_calibrations import (
    LEAST_SEEN,
    calibrate_tilts,
    describe,
    means_under,
    tilt_many,
)
from counterpoise.weights.protocol import coded_rows
from counterpoise.weights.row_blocks import MOST_HELD, FeatureRows, MadeRows, RowBlocks, Turn
from counterpoise.weights.standardise import Standardised, chunks, spread
from counterpoise.weights.weights import Weights
from counterpoise.weights.whitening import Whitening, least_loadings

if TYPE_CHECKING:
    from counterpoise.weights.replicates import Redraws

# The effective sample size has to be this part of the rows, or the private table's number of rows.
LEAST_FRACTION = 0.5
# About how many rows the softness is looked for on.
FIRST_ROWS = 10_000
# What may be added to the softness until it is, from much to little.
EXTRA_SOFTNESS = tuple(np.geomspace(200.0, 0.02, 27).tolist())
NEAR = 2  # a target at which rows would stay effective if its square were as many times as large
STRIDE = 4  # how many of these are taken at a time, as long as that goes well
SOFTER = 0.4  # what more of it is added at a time where a part of the rows misled
# White means that move by h take about exp(-|h|^2) of the effective rows. What is in doubt moves
# those of a replicate by no more than takes half of its rows: see `replicate_part`.
MOST_MOVED = math.log(2)
# As many rows move a mean about half as far as they are asked to; ten times as many, nearly all the
# way. A target that no rows reach, as fewer of a category than none, would take all of them.
FEW_ROWS = 3.0


@dataclass(frozen=True, eq=False)
class MomentModel:
    """Noisy differences of feature means, and the tilt exp(z.theta) that makes up for them."""

    schema: Schema
    standardised: Standardised
    whitening: Whitening
    differences: np.ndarray  # d
    noise_scale: float  # the standard deviation of the privacy noise on a standardised mean
    trust: np.ndarray  # T
    softness: np.ndarray  # how much a mean may miss its target
    prior: np.ndarray  # V
    doubt: np.ndarray  # the squared error of each shrunken difference, as far as can be told
    follows: np.ndarray  # whether the synthetic rows follow the private sample in a coordinate
    missed: np.ndarray  # what the weights leave of each
    population: float  # the (noisy, or public) number of private rows
    theta: np.ndarray
    private: bool = True
    not_asked: Mapping[str, str] = field(default_factory=dict)  # questions, and what is in the way

    is_pooled = True

    def weigh(self, synthetic: Any) -> Weights:
        """The weights of rows from the same synthesizer; free."""
        rows = self.standardised.ready(coded_rows(self.schema, synthetic))
        # In double precision, so that a row weighs the same whatever rows are beside it.
        parts = [self.standardised.single(chunk) @ self.tilt for chunk in chunks(rows)]
        return Weights(np.concatenate([np.empty(0), *parts]), self.reached)

    def calibrated(self, rows: FeatureRows, private_rows: float, loose: np.ndarray) -> MomentModel:
        """The model with the tilt that brings these synthetic rows to the shrunken difference.

        All means are matched more softly until the effective sample size is as large as the
        private table, or half the synthetic one: a tilt in many directions at once would cost
        more in variance than it saves in bias.
        """
        white = rows.turned(self.turn)
        target = self.trust @ self.differences
        least = min(LEAST_FRACTION, private_rows / max(1, len(rows)))
        some = white.take(spread(len(rows), FIRST_ROWS))
        softness, theta = _hardest(some, target, self.softness, loose, least)
        theta = calibrate(white, target, softness, theta)
        mean, effective = mean_and_fraction(white, theta)
        while effective < least and softness.max() < EXTRA_SOFTNESS[0]:
            # A part of the rows was too hopeful of the whole.
            softness = softness + loose * max(EXTRA_SOFTNESS[-1], SOFTER * float(softness.max()))
            theta = calibrate(white, target, softness, theta)
            mean, effective = mean_and_fraction(white, theta)
        return replace(self, softness=softness, theta=theta, missed=target - mean)

    @property
    def tilt(self) -> np.ndarray:
        """What to multiply features by: z.theta without z, and quicker."""
        found: np.ndarray = self.whitening.directions @ self.theta
        return found

    @property
    def turn(self) -> Turn:
        """What makes white rows of features."""
        return Turn(self.whitening.centre, self.whitening.directions)

    @property
    def reached(self) -> float:
        """The part of the believed difference that the weights make up for.

        One as long as what they miss is no more than what is in doubt anyway.
        """
        missed, target = float(self.missed @ self.missed), self.trust @ self.differences
        known = float(target @ target)
        if missed <= self.doubt.sum() or known == 0:
            return 1.0
        return max(0.0, 1 - math.sqrt(missed / known))

    def replicate(self, synthetic: Any, redraws: Redraws) -> np.ndarray:
        """Replicate weights: the procedure again, with fresh noise and a fresh private sample.

        A replicate's base weights say what the synthesizer might have drawn, the resample what
        the private rows might have been. Shrinkage hides a part of the doubt about a difference
        from both; that part is drawn as well. The weights take the place of the resample.
        """
        return self.replicating(synthetic, redraws)[0]

    @property
    def replicate_part(self) -> float:
        """The part of the way from the weight that replicates go, for all that is random.

        The doubt about many differences, each too small to be seen, moves means further in all
        than rows can be weighted to follow.
        """
        moved = float(self.doubt.sum() + self.missed @ self.missed)
        return math.sqrt(MOST_MOVED / max(moved, MOST_MOVED))

    def replicating(self, synthetic: Any, redraws: Redraws) -> tuple[np.ndarray, Tilts]:
        """The replicate weights of these rows, and the tilts by which others have theirs."""
        coded = self.standardised.ready(coded_rows(self.schema, synthetic))
        rows = self.white_rows(coded)
        base = redraws.base.astype(np.float32, copy=False)
        start = redraws.start.astype(np.float32)[:, None]
        if len(base) == 0:
            return base, Tilts(self, np.zeros((len(self.theta), base.shape[1])))
        part, size, count = self.replicate_part, len(self.theta), base.shape[1]
        pull(base, start, part)
        # m_r: the means under each replicate's base weights, zero for uniform ones; and how the
        # private means move when the private rows are drawn again
        described = describe(rows, base, redraws.resample, redraws.weights)
        centres, sampled = described.means, part * described.shifts
        normal = redraws.generator.normal
        noise = part * self.noise_scale * normal(size=(len(self.whitening.directions), count))
        shifts = sampled + self.whitening.directions.T @ noise
        believed = self.trust @ (shifts - centres)
        # T e + (I - T) theta is a draw of the posterior. Where the synthesizer counted the columns,
        # theta is in the base weights; where it did not, and as far as they show less, it is drawn.
        left = np.maximum(part**2 * self.prior - centres.var(axis=1), 0)
        drawn = np.sqrt(left)[:, None] * normal(size=(size, count))
        drawn -= self.trust @ drawn
        # What few rows of a replicate carry, they are asked for softly, around the released tilt:
        # it would go to any length for means that those rows cannot have.
        few = FEW_ROWS / np.maximum(described.carried, 1)
        soft = np.maximum(self.softness[:, None], few)
        # What the weights could not make up for is known to be there; and which law of a difference
        # is the one that holds is not.
        unknown = part * np.sqrt(self.beyond + self.missed**2)
        spare = (1 + soft) * (drawn + unknown[:, None] * normal(size=(size, count)))
        # Where nothing is drawn again, the weights' own tilt is the solution.
        unmoved = redraws.weights[:, None].astype(np.float32)
        centre, mean = means_under(rows, np.hstack([start, unmoved])).T[:, :, None]
        targets = mean + soft * self.theta[:, None] + spare
        targets += (centres - centre) + believed + self.trust @ centre
        # Replicates are the weights once more: each is near them.
        out, near = redraws.resample, self.theta
        made, thetas = calibrate_tilts(rows, base, targets, soft, described, out, near)
        return made, Tilts(self, thetas)

    @property
    def beyond(self) -> np.ndarray:
        """What is in doubt beyond the variance T S of a normal law: between laws of several widths.

        S has the chance of the private sample where the synthetic rows do not follow it.
        """
        root = self.noise_scale * self.whitening.directions
        known = (self.trust * (root.T @ root)).sum(axis=1)
        known += np.diag(self.trust) * np.where(self.follows, 0.0, 1 / self.population)
        return np.maximum(self.doubt - known, 0.0)

    def white_rows(self, rows: Coded) -> RowBlocks:
        """The rows in white coordinates and single precision; held, unless they are too many."""
        made = MadeRows(self.standardised.ready(rows), self.standardised.single, self.turn)
        return made if len(rows) * len(self.theta) > MOST_HELD else made.held()

    def white(self, rows: Coded) -> np.ndarray:
        """The rows in white coordinates."""
        parts = [
            (self.standardised(chunk) - self.whitening.centre) @ self.whitening.directions
            for chunk in chunks(rows)
        ]
        return np.concatenate([np.empty((0, len(self.theta))), *parts])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The model as named arrays, for saving without pickle."""
        return {
            "features": np.array(json.dumps(self.standardised.features.to_dict())),
            "centre": self.standardised.centre,
            "scale": self.standardised.scale,
            "bound": np.array(self.standardised.bound),
            "asked": np.array(self.standardised.asked),
            "asked_bound": np.array(self.standardised.asked_bound),
            "white_centre": self.whitening.centre,
            "white_directions": self.whitening.directions,
            "white_blocks": self.whitening.blocks,
            "white_features": self.whitening.features,
            "white_loadings": self.whitening.loadings,
            "white_carried": self.whitening.carried,
            "differences": self.differences,
            "noise_scale": np.array(self.noise_scale),
            "trust": self.trust,
            "softness": self.softness,
            "prior": self.prior,
            "doubt": self.doubt,
            "follows": self.follows,
            "missed": self.missed,
            "population": np.array(self.population),
            "theta": self.theta,
            "private": np.array(self.private),
            "not_asked": np.array(json.dumps(dict(self.not_asked))),
        }

    @classmethod
    def from_arrays(cls, schema: Schema, arrays: Mapping[str, np.ndarray]) -> MomentModel:
        """The inverse of `to_arrays`."""
        features = Features.from_dict(schema, json.loads(str(arrays["features"])))
        scales = arrays["centre"], arrays["scale"], float(arrays["bound"])
        asked = int(arrays.get("asked", 0)), float(arrays.get("asked_bound", 0.0))
        blocks = arrays["white_blocks"]
        white = arrays["white_centre"], arrays["white_directions"], blocks
        # Models saved by versions before 0.2 had none of these, and doubted differences of samples.
        own = arrays.get("white_features", np.arange(len(blocks)))
        loadings = arrays.get("white_loadings")
        if loadings is None:
            loadings = least_loadings(arrays["white_directions"])
        carried = arrays.get("white_carried", np.zeros(len(blocks)))
        follows = arrays.get("follows", np.ones(len(blocks), dtype=bool))
        return cls(
            schema=schema,
            standardised=Standardised(features, *scales, *asked),
            whitening=Whitening(*white, own, loadings, carried),
            differences=arrays["differences"],
            noise_scale=float(arrays["noise_scale"]),
            trust=arrays["trust"],
            softness=arrays["softness"],
            prior=arrays.get("prior", arrays["doubt"]),
            doubt=arrays["doubt"],
            follows=follows,
            missed=arrays["missed"],
            population=float(arrays["population"]),
            theta=arrays["theta"],
            private=bool(arrays["private"]),
            not_asked=json.loads(str(arrays.get("not_asked", "{}"))),
        )


@dataclass(frozen=True, eq=False)
class Tilts:
    """The tilts of replicates, found on some rows of a synthesizer, for any others of it."""

    model: MomentModel
    thetas: np.ndarray  # one a column

    def weights(self, synthetic: Any, base: np.ndarray) -> np.ndarray:
        """The base weights of other rows, a column a replicate, tilted; each averages to one."""
        coded = self.model.standardised.ready(coded_rows(self.model.schema, synthetic))
        start = np.ones((len(base), 1), dtype=np.float32)
        base = base.astype(np.float32, copy=False)
        pull(base, start, self.model.replicate_part)
        # One pass is all there is, so nothing is gained by holding the rows.
        rows = MadeRows(coded, self.model.standardised.single, self.model.turn)
        return tilt_many(rows, base, self.thetas)


def pull(base: np.ndarray, start: np.ndarray, part: float) -> None:
    """Base weights, a column a replicate, this part of the way from those at the start; in place.

    >>> base = np.array([[2.0], [0.0]], dtype=np.float32)
    >>> pull(base, np.ones((2, 1), dtype=np.float32), 0.5)
    >>> base.tolist()
    [[1.5], [0.5]]
    """
    base *= (part / np.maximum(base.mean(axis=0, dtype=float), 1e-300)).astype(base.dtype)
    base += (1 - part) * start


def _hardest(
    rows: np.ndarray, target: np.ndarray, own: np.ndarray, loose: np.ndarray, least: float
) -> tuple[np.ndarray, np.ndarray]:
    """The least softness at which this part of the rows stays effective, and its theta.

    At once where the target is near. Else from soft to hard, each solution the start of the next,
    in shorter steps where one went too far: the way is short, and ends before the weights collapse,
    where Newton's method would be slow.
    """
    # What hardly varies among these rows, in white coordinates, they cannot be asked to match.
    unseen = (rows.var(axis=0) < LEAST_SEEN).astype(float)
    # White means that move by h take about exp(-|h|^2) of the effective rows.
    if math.exp(-NEAR * float(target @ target)) > least:
        tried = calibrate(rows, target, own + unseen)
        if effective_fraction(rows, tried) >= least:
            return own, tried
    # theta is about target / softness: at the softest, next to nothing however far the target is.
    far = max(1.0, 10 * float(np.linalg.norm(target)) / EXTRA_SOFTNESS[0])
    theta, softness = np.zeros(len(own)), own + far * EXTRA_SOFTNESS[0] * loose
    extras = (*(far * extra for extra in EXTRA_SOFTNESS), 0.0)
    place, too_hard, stride = -1, len(extras), STRIDE
    while place + 1 < too_hard:
        ahead = min(place + stride, too_hard - 1)
        more = extras[ahead]
        tried = calibrate(rows, target, own + more * loose + unseen, theta)
        if effective_fraction(rows, tried) < least:
            too_hard, stride = ahead, max(1, stride // 2)
        else:
            place, theta, softness = ahead, tried, own + more * loose
    return softness, theta
