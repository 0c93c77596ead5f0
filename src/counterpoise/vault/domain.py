"""The paid part of a schema: bounds and categories that a share of the budget estimates.

Every column that the schema leaves open gets an equal part of the share, and every list of
categories an equal part of the delta that is set aside. The result is a complete schema that holds
noised answers only, and is public from then on. [PRIVACY: ground rule 4]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from counterpoise.errors import VaultError
from counterpoise.schema import Column, Schema
from counterpoise.vault.bounds import NoisyBounds, bounds
from counterpoise.vault.budget import Share
from counterpoise.vault.categories import categories

if TYPE_CHECKING:
    from counterpoise.vault.vault import Vault

# Where values that are not listed go; a private list of categories is never all of them.
OTHER = "other"

# The part of the budget's delta that thresholds get, when categories are paid for.
DELTA_FRACTION = 0.1


def threshold_delta(schema: Schema, delta: float) -> float:
    """The delta to set aside for the categories that the schema leaves open."""
    open_lists = any("enum" in column.missing for column in schema)
    return DELTA_FRACTION * delta if open_lists else 0.0


def learn_domain(vault: Vault, share: Share, delta: float = 0.0) -> Schema:
    """Estimate what the schema leaves open; charges each column its part, and `delta` in all."""
    unknown = [column for column in vault.schema if not column.is_complete]
    lists = sum("enum" in column.missing for column in unknown)
    schema = vault.schema
    for column in unknown:
        part = share.part(1 / len(unknown))
        if "enum" in column.missing:
            found = categories(vault, column.name, part, delta / lists)
            words = schema.words_for_null(column)
            schema = schema.replace(_with_categories(column, found.values, words))
        else:
            schema = schema.replace(_with_bounds(column, bounds(vault, column.name, part)))
    vault._settle(schema)
    return schema


def _with_categories(
    column: Column, values: tuple[str, ...], missing_values: tuple[str, ...]
) -> Column:
    if column.category_type == "integer":
        whole = [value for value in values if re.fullmatch(r"-?[0-9]{1,15}(\.0+)?", value)]
        numbers = sorted({int(value.partition(".")[0]) for value in whole})
        if not numbers:
            raise VaultError(
                f"categories of {column.name!r}: none is frequent enough to stand clear of the "
                "noise; state them in the schema, or give the domain a larger share"
            )
        return replace(column, categories=tuple(numbers))
    # A name that is not taken: neither by a value nor as a word for null.
    other = next(name for name in _other_names() if name not in missing_values)
    listed = tuple(value for value in values if value != other)
    return replace(column, categories=(*listed, other), other=other)


def _other_names() -> Iterator[str]:
    """`other`, `other_2`, `other_3` and so on."""
    return itertools.chain([OTHER], (f"{OTHER}_{number}" for number in itertools.count(2)))


def _with_bounds(column: Column, found: NoisyBounds) -> Column:
    """The column with what was found, where nothing was stated."""
    minimum: Any = found.minimum if column.minimum is None else column.minimum
    maximum: Any = found.maximum if column.maximum is None else column.maximum
    if not minimum < maximum:
        raise VaultError(
            f"bounds of {column.name!r}: what was found contradicts the bound that is stated; "
            "state both, or neither"
        )
    return replace(column, minimum=minimum, maximum=maximum)
