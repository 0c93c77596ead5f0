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

from counterpoise.arguments import instance_of, one_of, seed_or_none, whole_number
from counterpoise.errors import TableError
from counterpoise.registry import Registry
from counterpoise.schema import Schema
from counterpoise.schema.tables import FORMATS
from counterpoise.vault import Share, Vault

# More rows than a table in memory can have; whoever wants them draws several tables.
MOST_ROWS = 1_000_000_000


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


def check_request(vault: Any, share: Any) -> None:
    """Refuse to ask anything but a vault, and within anything but a share."""
    instance_of("vault", vault, Vault, "a Vault of private rows")
    instance_of("share", share, Share, "a share of the budget, such as vault.budget.whole")


def checked_draw(rows: Any, seed: Any, format: Any) -> tuple[int, int | None, str]:
    """How many rows are to be drawn, none included, by which seed, and as what."""
    chosen = one_of("format", format, FORMATS, TableError)
    return whole_number("rows", rows, 0, MOST_ROWS), seed_or_none(seed), chosen


SYNTHESIZERS: Registry[Synthesizer] = Registry("synthesizers")
