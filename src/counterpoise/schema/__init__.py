"""What is publicly known of a table, and the codings between tables, codes and the unit box.

Nothing in this room is private, except what `draft_schema` proposes, until it is accepted.
"""

from counterpoise.schema.coarse import settled
from counterpoise.schema.coded import Coded
from counterpoise.schema.column import DEFAULT_BINS, MAX_INTEGER_VALUES, Column
from counterpoise.schema.dialect import Dialect
from counterpoise.schema.draft import draft_schema
from counterpoise.schema.files import as_relation, private_errors
from counterpoise.schema.frequencies import grouped
from counterpoise.schema.grids import fine_grid, provisional
from counterpoise.schema.grouping import Grouping
from counterpoise.schema.heaps import described, with_candidates
from counterpoise.schema.noisy_cells import NoisyCells
from counterpoise.schema.pieces import denoised
from counterpoise.schema.schema import Schema
from counterpoise.schema.shape import Shape
from counterpoise.schema.spelling import Spelling
from counterpoise.schema.sql import place_expression, text_expression, value_expression
from counterpoise.schema.tables import (
    check_columns,
    convert,
    read_table,
    table_columns,
    write_csv,
    write_parquet,
)

__all__ = [
    "DEFAULT_BINS",
    "MAX_INTEGER_VALUES",
    "Coded",
    "Column",
    "Dialect",
    "Grouping",
    "NoisyCells",
    "Schema",
    "Shape",
    "Spelling",
    "as_relation",
    "check_columns",
    "convert",
    "denoised",
    "described",
    "draft_schema",
    "fine_grid",
    "grouped",
    "place_expression",
    "private_errors",
    "provisional",
    "read_table",
    "settled",
    "table_columns",
    "text_expression",
    "value_expression",
    "with_candidates",
    "write_csv",
    "write_parquet",
]
