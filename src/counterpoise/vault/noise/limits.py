"""The noise that can be drawn: of a scale that leaves it within 64 bits."""

import math

from counterpoise.errors import BudgetError

# Noise is many times its scale now and then, and a sum over rows comes on top: the bits above this
# are for them. Noise of that size is all that anybody would see.
LARGEST_SCALE = 2.0**56


def check_scale(scale: float, size: int = 1) -> None:
    """Refuse noise of which `size` scales together would leave no room in 64 bits.

    >>> check_scale(1e12)
    >>> check_scale(1e18)
    Traceback (most recent call last):
    counterpoise.errors.BudgetError: the share is too small for this query: ...
    """
    if not (math.isfinite(scale) and scale > 0):
        raise BudgetError("the scale of noise has to be a positive number")
    if scale * size > LARGEST_SCALE:
        raise BudgetError(
            "the share is too small for this query: its noise would be larger than any answer; "
            "give it a larger share, or start with a larger budget"
        )
