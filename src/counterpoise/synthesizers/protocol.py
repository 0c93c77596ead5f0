"""What a synthesizer is, and what it makes: two protocols that every method here obeys.

A synthesizer is a frozen dataclass of public parameters. Its `fit` asks a vault, within a share,
and returns a model that holds noised answers only, so a model can be kept, sampled and shared
without further charge.

A model is saved as arrays, and read back by the class that its method's `fit` says it returns
(or that the method names in `model_type`), with the class method
`from_arrays(schema, arrays, private)`. A class without one is used as well; it is not saved.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from counterpoise.registry import Registry
from counterpoise.schema import Schema
from counterpoise.vault import Share, Vault


class Model(Protocol):
    """Noised answers from which any number of rows can be drawn."""

    @property
    def schema(self) -> Schema:
        """The public schema of the rows."""
        ...

    @property
    def private(self) -> bool:
        """Whether the answers were noised privately; False when a seed was used."""
        ...

    @property
    def rows(self) -> int:
        """The (noisy, or public) number of private rows: how many to draw when nobody says."""
        ...

    def sample(self, rows: int, seed: int | None = None, format: str = "pandas") -> Any:
        """A synthetic table; free, and repeatable with a seed."""
        ...

    def to_arrays(self) -> Mapping[str, np.ndarray]:
        """The model as named arrays, for saving without pickle."""
        ...


class Synthesizer(Protocol):
    """A way to make a model."""

    def fit(self, vault: Vault, share: Share) -> Model:
        """Fit a model within a share of the vault's budget."""
        ...


SYNTHESIZERS: Registry[Synthesizer] = Registry("synthesizers")
