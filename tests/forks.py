"""Child processes of the tests' own."""

import os
import warnings


def fork() -> int:
    """`os.fork`, without a word about threads: a child must not wait for them, and ours do not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        return os.fork()
