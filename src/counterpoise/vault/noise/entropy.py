"""Where random bits come from: the operating system, or a seed that forfeits privacy."""

import os
from typing import Protocol

import numpy as np


class Entropy(Protocol):
    """A source of uniform 64-bit words; `private` says whether nobody can know them."""

    private: bool

    def words(self, count: int) -> np.ndarray:
        """`count` independent uniform words, as uint64."""
        ...


class SystemEntropy:
    """The operating system's cryptographic generator."""

    private = True

    def words(self, count: int) -> np.ndarray:
        """`count` words from the operating system."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededEntropy:
    """A seeded generator, for tests and teaching: what it noises is not private."""

    private = False

    def __init__(self, seed: int):
        self._generator = np.random.default_rng(seed)

    def words(self, count: int) -> np.ndarray:
        """`count` words that the seed determines."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


def longer(entropy: Entropy, bits: int) -> int:
    """A uniform integer of `bits` bits, a multiple of 64."""
    value = 0
    for word in entropy.words(bits // 64).tolist():
        value = value << 64 | word
    return value
