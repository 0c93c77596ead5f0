"""The bandwidth of a kernel density around public points, by the likelihood of private rows.

Public points y_1 .. y_k and a list of widths w make densities f_w(x) = 1/k sum_j K_w(x - y_j): a
normal kernel of deviation w in what has an order, and in a category the point's own with chance
1 - min(w, 1), any one else. A row's part in the score of a width is the log of f_w(x) over the
uniform density, cut to [-B, B] with B = 4 and rounded to a whole number of 2^-24 of that range.

**`exponential`** chooses a width with the exponential mechanism. A row more adds to every width's
score a number within [-B, B], so u - u' has a range of 2B over widths, and a replaced row one of
4B; the mechanism's D is half of that, r B and 2 r B for a person with r rows. Charge: one
exponential mechanism.

**`laplace`** takes the place of the best of W widths in their list and adds discrete Laplace noise.
Whatever the rows are, that place is from 0 to W - 1, so D1 = W - 1, under both relations and for
any number of rows a person. No better bound is known: one row can carry the maximum from one end of
the list to the other. What comes out beyond the list is its end. Charge: one Laplace event. It is
the noise that was published for this purpose, and worth having for large budgets only.
[PRIVACY: mechanisms]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from counterpoise.arguments import instance_of, number_array, one_of
from counterpoise.errors import VaultError
from counterpoise.schema import Coded
from counterpoise.vault.asked import share_of
from counterpoise.vault.budget import Share
from counterpoise.vault.events import DiscreteLaplaceDpEvent, DpEvent, ExponentialDpEvent
from counterpoise.vault.noise import Noise, check_scale
from counterpoise.vault.point_scores import Places, PointDistance, checked_width
from counterpoise.vault.select import exponential_choice
from counterpoise.vault.storage import Storage

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

LAWS = ("exponential", "laplace")
# B: what a row can say for or against a width, in units of log-likelihood.
MOST_LIKELIHOOD = 4.0

# log sqrt(2 pi)
LOG_ROOT = 0.5 * math.log(2 * math.pi)

_PARTS = 2**24
_BLOCK_CELLS = 1_000_000
_PLACING = PointDistance(norm=2)


def select_bandwidth(
    vault: Vault, points: Coded, widths: Sequence[float], share: Share, law: str = "exponential"
) -> float:
    """One of the `widths`, by the likelihood of the private rows; charges one event."""
    share, law = share_of(share), one_of("law", law, LAWS, VaultError)
    instance_of("points", points, Coded, "public rows that the schema has coded", VaultError)
    wanted = _checked_widths(widths)
    if not len(points) or points.schema.as_released() != vault.schema.as_released():
        raise VaultError("points: expected some rows that the vault's own schema has coded")
    vault.require_rows("bandwidth")
    places = _PLACING.places(points)
    sizes = tuple(column.size for column in vault.schema if column.kind == "categorical")
    event: DpEvent
    if law == "exponential":
        epsilon = vault.ledger.selection_epsilon(share)
        event = ExponentialDpEvent(epsilon)
    else:
        scale = share.laplace_scale(len(wanted) - 1)
        check_scale(scale)
        event = DiscreteLaplaceDpEvent(1 / scale, len(wanted) - 1)
    # Half of the range of one row's part, which is from 0 to 1 here
    sensitivity = vault.budget.row_sensitivity(0.5)

    def look(storage: Storage, source: Noise) -> np.ndarray:
        exact = np.zeros(len(wanted), dtype=np.int64)
        block = max(1, _BLOCK_CELLS // len(points))
        for batch in storage.batches(max(block, 10_000)):
            for part in batch.parts(block):
                exact += _parts(_PLACING.places(part), places, sizes, wanted)
        if law == "exponential":
            return np.array([exponential_choice(source, exact / _PARTS, sensitivity, epsilon)])
        return source.laplace(np.array([int(np.argmax(exact))]), scale)

    query = f"bandwidth out of {len(wanted)}"
    asked = {"widths": wanted, "law": law, "points": places.digest}
    place = int(vault._ask(query, event, look, asked)[0])
    return wanted[min(max(place, 0), len(wanted) - 1)]


def _parts(
    rows: Places, points: Places, sizes: tuple[int, ...], widths: tuple[float, ...]
) -> np.ndarray:
    """What rows say for each width together, each row from 0 to 2^24."""
    squares = np.zeros((len(rows), len(points)))
    for one, other in zip(rows.coordinates.T, points.coordinates.T, strict=True):
        squares += (one[:, None] - other[None, :]) ** 2
    same = rows.codes[:, None, :] == points.codes[None, :, :]
    ordered = rows.columns - len(sizes)
    found = np.empty(len(widths), dtype=np.int64)
    for place, width in enumerate(widths):
        logs = squares * (-0.5 / width**2) - ordered * (math.log(width) + LOG_ROOT)
        other = min(width, 1.0)
        for column, size in enumerate(sizes):
            # s (1 - t + t/s) where it is the same, s t/s where it is not
            kept = math.log(size * (1 - other) + other)
            logs += np.where(same[:, :, column], kept, math.log(other))
        likelihood = logsumexp(logs, axis=1) - math.log(len(points))
        # What is not a number says as much against a width as a row can.
        cut = np.fmin(np.fmax(likelihood / MOST_LIKELIHOOD, -1.0), 1.0)
        found[place] = np.rint((cut + 1) / 2 * _PARTS).astype(np.int64).sum()
    return found


def _checked_widths(widths: Sequence[float]) -> tuple[float, ...]:
    expected = "at least two increasing positive numbers"
    found = number_array("widths", widths, expected, VaultError)
    wanted = tuple(checked_width("widths", width) for width in found.ravel().tolist())
    if found.ndim != 1 or len(wanted) < 2:
        raise VaultError(f"widths: expected {expected}")
    if list(wanted) != sorted(set(wanted)):
        raise VaultError(f"widths: expected {expected}")
    return wanted
