"""Whether any row can obey the checks of a schema: a search over its public domain.

Rows are drawn evenly over the codes of the columns that the checks name, and those that break a
check are mended at random: one column of one broken check is drawn again, as WalkSAT does (Selman,
Kautz and Cohen 1994). A search proves nothing, but a check that no row is found for would be
obeyed by hardly any row of a model either. It needs the schema alone, and so costs nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from counterpoise.errors import SchemaError
from counterpoise.schema.expression_trees import Call, Node, parts
from counterpoise.schema.expressions import IS_NULL
from counterpoise.schema.row_rules import obeyed
from counterpoise.schema.schema import Schema

ROWS, STEPS = 2_000, 60


def require_possible(schema: Schema) -> None:
    """Raise a SchemaError that names a check which no row of the domain seems to obey, if any.

    What depends on bounds or categories that are still to be paid for is left aside.

    >>> from counterpoise.schema import Column
    >>> require_possible(Schema([Column.integer("hour", 0, 23)], checks=["hour > 30"]))
    Traceback (most recent call last):
    counterpoise.errors.SchemaError: check 'hour > 30': no row of the schema's domain obeys it: ...
    """
    known = _without_open_columns(schema)
    if known is None:
        return
    generator = np.random.default_rng(0)
    columns = known.modelled
    # A null obeys what it makes null, so there are none unless a check asks for them.
    asks_for_nulls = any(_names_nulls(check.tree) for check in known.rules.checks)
    sizes = np.array([each.size if asks_for_nulls else each.cells for each in columns])
    involved = [
        np.array([columns.index(name) for name in sorted(known.rules.needs(check))])
        for check in known.rules.checks
    ]
    codes = generator.integers(0, sizes, (ROWS, len(sizes)))
    ever = np.zeros(len(involved), dtype=bool)
    for _ in range(STEPS):
        found = obeyed(known, columns.decode(codes, generator))
        kept = np.stack(list(found.values())[: len(involved)], axis=1)
        ever |= kept.any(axis=0)
        broken = ~kept
        if not broken.any(axis=1).all():
            return
        # For each row one of its broken checks, and one of the columns of that.
        chosen = (broken * generator.random(broken.shape)).argmax(axis=1)
        for check, places in enumerate(involved):
            rows = np.flatnonzero(chosen == check)
            drawn = generator.choice(places, len(rows))
            codes[rows, drawn] = generator.integers(0, sizes[drawn])
    if ever.all():
        raise SchemaError(
            "the checks contradict each other: no row of the schema's domain obeys all of them; "
            "leave one out, or correct it"
        )
    text = known.checks[int(np.argmin(ever))]
    raise SchemaError(
        f"check {text!r}: no row of the schema's domain obeys it: correct the check, or the bounds "
        "of its columns; where one column is equal to what others make, let it be derived"
    )


def _without_open_columns(schema: Schema) -> Schema | None:
    """The schema of what the checks name, as far as it is complete; None where nothing is left."""
    rules = schema.rules
    pairs = zip(schema.checks, rules.checks, strict=True)
    needed = {
        text: rules.needs(check)
        for text, check in pairs
        if all(schema[name].is_complete for name in rules.needs(check))
    }
    if not needed:
        return None
    there = set().union(*needed.values())
    derived = {column.name for column, each in rules.derived if rules.needs(each) <= there}
    found = schema.select([name for name in schema.names if name in there | derived])
    # A check may be about a single one of the categories that share a code.
    found = replace(found, columns=tuple(column.ungrouped for column in found))
    return found if found.checks else None


def _names_nulls(node: Node) -> bool:
    if isinstance(node, Call) and node.function.removeprefix("np.") == IS_NULL:
        return True
    return any(_names_nulls(part) for part in parts(node))
