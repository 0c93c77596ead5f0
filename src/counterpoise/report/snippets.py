"""How to use a release in Python, R and SQL, written out for the columns that it has.

All three give the same estimate. Standard errors come from the replicate weights, by the
convention V = c sum_r (theta_r - theta)^2, which R's package survey knows as type "other"; c is
1/R, or more where replicates go a part of the way. Python adds what no weight of a row can carry:
rows that noise hides beyond all others, and categories too rare to be seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from counterpoise.schema import Column, Schema

# Words that R does not take for a name.
_R_WORDS = {
    *("if", "else", "repeat", "while", "function", "for", "next", "break", "in"),
    *("TRUE", "FALSE", "NULL", "Inf", "NaN", "NA"),
    *("NA_integer_", "NA_real_", "NA_complex_", "NA_character_"),
}


@dataclass(frozen=True)
class Snippets:
    """The same estimate in three languages, to be run in the folder of the release.

    >>> schema = Schema([Column.integer("age", 0, 99), Column.boolean("ill")])
    >>> print(Snippets(schema, replicates=80).python)
    import counterpoise as cp
    <BLANKLINE>
    release = cp.load(".")               # the folder that this page is in
    release.mean("age")                  # with its interval, and unweighted beside it
    release.mean("age", by="ill")
    """

    schema: Schema
    replicates: int
    part: float = 1.0

    @property
    def number(self) -> Column | None:
        """A column to take the mean of, if there is one."""
        return next((each for each in self.schema if _is_number(each)), None)

    @property
    def group(self) -> Column | None:
        """A column to group by, if there is one."""
        return next((each for each in self.schema if not each.is_numeric), None)

    @property
    def scale(self) -> float:
        """c in V = c sum_r (theta_r - theta)^2, as the card has it; all its digits are written."""
        return 1 / (self.replicates * self.part**2)

    @property
    def python(self) -> str:
        """Through this package."""
        shown = self.number or self.schema[self.schema.names[0]]
        method = "mean" if self.number else "histogram"
        calls = [
            (
                f"release.{method}({_python(shown.name)})",
                "with its interval, and unweighted beside it",
            )
        ]
        if self.group is not None and self.group is not shown:
            calls.append(
                (f"release.{method}({_python(shown.name)}, by={_python(self.group.name)})", "")
            )
        opening = [('release = cp.load(".")', "the folder that this page is in")]
        lines = [f"{code:<36} # {said}" if said else code for code, said in (*opening, *calls)]
        return "\n".join(["import counterpoise as cp", "", *lines])

    @property
    def r(self) -> str:
        """Through the package survey; arrow reads the file, or base R a CSV file beside it."""
        name = _r((self.number or self.schema[self.schema.names[0]]).name)
        opening = (
            "library(survey)\n\n"
            'rows <- as.data.frame(arrow::read_parquet("synthetic.parquet"))\n'
            "# without the package arrow, where the folder has a CSV file:\n"
            '# rows <- read.csv("synthetic.csv", check.names = FALSE, na.strings = "")\n'
        )
        if self.replicates:
            design = (
                "design <- svrepdesign(\n"
                '  data = rows, weights = ~weight, repweights = "^weight_[0-9]+$",\n'
                f'  type = "other", scale = {self.scale}, '
                f"rscales = rep(1, {self.replicates}),\n"
                "  combined.weights = TRUE, mse = TRUE\n)\n"
            )
        else:
            design = (
                "# No replicate weights: take the estimates, not the standard errors.\n"
                "design <- svydesign(ids = ~1, data = rows, weights = ~weight)\n"
            )
        grouped = ""
        if self.number is not None and self.group is not None:
            grouped = f"\nsvyby(~{name}, ~{_r(self.group.name)}, design, svymean, na.rm = TRUE)"
        return f"{opening}{design}svymean(~{name}, design, na.rm = TRUE){grouped}"

    @property
    def sql(self) -> str:
        """Through DuckDB; the weighted part needs no extension, and runs on other databases."""
        if self.number is None:
            name = _sql(self.schema.names[0])
            return (
                f"SELECT {name}, sum(weight) / sum(sum(weight)) OVER () AS share\n"
                f"FROM 'synthetic.parquet'\nGROUP BY {name};"
            )
        name = _sql(self.number.name)
        group = "" if self.group is None else f"{_sql(self.group.name)}, "
        by = "" if self.group is None else f"\nGROUP BY {_sql(self.group.name)}"
        estimate = (
            f"SELECT {group}sum(weight * {name}) / sum(weight) AS mean\n"
            f"FROM 'synthetic.parquet'\nWHERE {name} IS NOT NULL{by};"
        )
        if not self.replicates:
            return estimate
        weights = r"COLUMNS('^weight(_\d+)?$')"
        return (
            f"{estimate}\n\n-- the mean of all, with the standard error of its replicates\n"
            "WITH each AS (UNPIVOT (\n"
            f"  SELECT sum({name}::DOUBLE * {weights}) / sum({weights})\n"
            f"  FROM 'synthetic.parquet' WHERE {name} IS NOT NULL\n"
            ") ON COLUMNS(*) INTO NAME weights VALUE mean)\n"
            "SELECT whole.mean, "
            f"sqrt({self.scale} * sum((each.mean - whole.mean) ** 2)) AS standard_error\n"
            "FROM each, (FROM each WHERE weights = 'weight') AS whole\n"
            "WHERE each.weights <> 'weight'\n"
            "GROUP BY whole.mean;"
        )


def _is_number(column: Column) -> bool:
    return column.kind in ("integer", "continuous")


def _python(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _sql(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}"'


def _r(name: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.]*", name) and name not in _R_WORDS:
        return name
    quoted = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{quoted}`"
