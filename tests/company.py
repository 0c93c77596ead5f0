"""Whether what is made of a row depends on the rows beside it, to the last bit."""

import numpy as np

# Where products of matrices change the order in which they add up, and a little beside.
COMPANIES = (1, 2, 3, 5, 8, 13, 100)


def depends_on_company(make, rows):
    """How many of the first hundred rows come out otherwise alone, in front or behind others."""
    whole = make(rows)
    changed = set()
    for size in COMPANIES:
        for start in range(0, 100, size):
            some = np.arange(start, min(start + size, 100))
            found = make(rows.take(some))
            changed |= {*some[(found != whole[some]).any(axis=1)].tolist()}
    return len(changed)
