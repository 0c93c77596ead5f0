"""`counterpoise analyse`: estimates from a release, with and without its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from counterpoise.cli.console import echo
from counterpoise.cli.options import PATH

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release
    from counterpoise.schema import Column

# What each statistic takes: the columns, and the options beside those that all take.
_TAKES: dict[str, tuple[str, frozenset[str]]] = {
    "mean": ("COLUMN", frozenset({"by"})),
    "total": ("[COLUMN]", frozenset({"by", "category"})),
    "proportion": ("COLUMN", frozenset({"by", "category"})),
    "quantile": ("COLUMN", frozenset({"by", "at"})),
    "histogram": ("COLUMN", frozenset({"by", "bins"})),
    "crosstab": ("ROW COLUMN", frozenset({"of"})),
    "corr": ("[COLUMN COLUMN ...]", frozenset()),
    "glm": ("FORMULA", frozenset({"family", "prior-deviation"})),
    "effect": ("TREATMENT OUTCOME TERMS", frozenset()),
    "certificate": ("TARGET [FEATURE ...]", frozenset({"loss", "norm", "failure"})),
}
_LOSSES = ["logistic", "squared", "hinge"]
_FAMILIES = ["gaussian", "binomial", "poisson", "multinomial"]
_COUNTS = {
    "COLUMN": {1},
    "[COLUMN]": {0, 1},
    "ROW COLUMN": {2},
    "FORMULA": {1},
    "TREATMENT OUTCOME TERMS": {3},
}

_EPILOG = """\b
Examples:
  counterpoise analyse patients-release/ mean age --by sex
  counterpoise analyse patients-release/ glm "readmitted ~ age + C(ward)"
  counterpoise analyse patients-release/ glm "stay ~ age" --rehearsals 10
"""


def _complete_column(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """The columns of the release on the line, read from its descriptor alone."""
    import json

    try:
        descriptor = json.loads((context.params["folder"] / "datapackage.json").read_text())
        names = [field["name"] for field in descriptor["resources"][0]["schema"]["fields"]]
    except (OSError, ValueError, LookupError, TypeError):
        return []
    names = [name for name in names if name.isprintable() and not _is_weight(name)]
    return [name for name in names if name.startswith(begun)]


@click.command("analyse", epilog=_EPILOG)
@click.argument("folder", type=PATH)
@click.argument("statistic", type=click.Choice(list(_TAKES)), metavar="STATISTIC")
@click.argument("columns", nargs=-1, shell_complete=_complete_column, metavar="[COLUMN]...")
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    shell_complete=_complete_column,
    help="One estimate a group; may be repeated.",
)
@click.option("--category", help="Of a total or a proportion.")
@click.option(
    "--at", type=float, metavar="SHARE", help="Which quantile. [default: 0.5, the median]"
)
@click.option("--bins", metavar="EDGES", help="Edges of a histogram's bins: 0,18,65,110.")
@click.option(
    "--of", type=click.Choice(["all", "rows", "columns"]), help="What a crosstab's shares are of."
)
@click.option("--family", type=click.Choice(_FAMILIES), help="Of a glm.")
@click.option(
    "--prior-deviation",
    type=float,
    metavar="NUMBER",
    help="Of coefficients of a glm that nothing measured. [default: 0.75]",
)
@click.option("--loss", type=click.Choice(_LOSSES), help="Of a certificate. [default: logistic]")
@click.option(
    "--norm",
    type=float,
    metavar="NUMBER",
    help="Largest norm of the coefficients that a certificate is about. [default: 1]",
)
@click.option(
    "--failure",
    type=float,
    metavar="CHANCE",
    help="With which chance a certificate may be wrong. [default: 0.05]",
)
@click.option(
    "--rehearsals",
    type=int,
    metavar="RUNS",
    help="Take off the bias that so many runs on the release's own rows show, such as 10; slow.",
)
@click.option("--seed", type=int, help="Of the rehearsals, to repeat them.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Of the intervals.")
@click.option("--simultaneous", is_flag=True, help="Intervals that hold all together.")
@click.option("--unweighted", is_flag=True, help="Leave the weights out.")
@click.option("--use-weights", is_flag=True, help="Use them whatever the verdict on them.")
@click.option("--json", "as_json", is_flag=True, help="Print the estimates as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Leave out notes.")
def command(
    folder: Path,
    statistic: str,
    columns: tuple[str, ...],
    by: tuple[str, ...],
    category: str | None,
    at: float | None,
    bins: str | None,
    of: str | None,
    family: str | None,
    prior_deviation: float | None,
    loss: str | None,
    norm: float | None,
    failure: float | None,
    rehearsals: int | None,
    seed: int | None,
    level: float,
    simultaneous: bool,
    unweighted: bool,
    use_weights: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Estimate from the release in FOLDER, with intervals, and without the weights beside them.

    STATISTIC is mean, total, proportion, quantile or histogram of a COLUMN, crosstab of two,
    corr of two or more, glm of a formula, or effect of a treatment on an outcome given terms, such
    as "age + ward". A certificate bounds how much worse a linear model of a TARGET of two classes,
    trained on the release, is than one trained on the private rows. A total without a column is
    the number of people. A mark says of an estimate that what it depends on was not measured
    together, and a footnote what that means.
    """
    given = {"by": by, "category": category, "at": at, "bins": bins, "of": of, "family": family}
    given |= {"prior-deviation": prior_deviation, "loss": loss, "norm": norm, "failure": failure}
    _check_call(statistic, columns, given)
    if unweighted and use_weights:
        raise click.UsageError("--unweighted and --use-weights exclude each other")
    if rehearsals is not None and statistic == "certificate":
        raise click.UsageError("certificate takes no --rehearsals: it is a bound, not an estimate")
    if rehearsals is not None and unweighted:
        raise click.UsageError("--rehearsals and --unweighted exclude each other")
    if seed is not None and rehearsals is None:
        raise click.UsageError("--seed: it is that of --rehearsals, which are not asked for")
    if not 0 < level < 1:
        raise click.UsageError(f"--level: expected a number between 0 and 1, not {level:g}")
    import counterpoise
    from counterpoise.cli.console import echo_json, estimate_lines, estimate_values, notes

    release = counterpoise.load(folder)
    given["weighted"] = not unweighted
    if unweighted and statistic != "certificate":
        release = release.unweighted()
    if use_weights:
        release = release.use_weights()
    with notes(quiet):
        # What is wrong with the call is found before the rehearsals, which take long.
        found = _STATISTICS[statistic](release, columns, given)
        if rehearsals is not None:
            rehearsal = release.rehearse(rehearsals, seed, progress=not quiet)
            found = rehearsal.correct(lambda made: _STATISTICS[statistic](made, columns, given))
    if simultaneous:
        if not hasattr(found, "simultaneous"):
            raise click.UsageError("--simultaneous: there is only one estimate")
        found = found.simultaneous()
    if statistic == "certificate":
        echo_json({"statistic": statistic, **found.to_dict()}) if as_json else echo(found)
    elif as_json:
        model = found if statistic == "glm" else None
        echo_json(
            {
                "statistic": statistic,
                "columns": list(columns),
                "by": list(by),
                "level": level,
                **({"simultaneous": True} if simultaneous else {}),
                "weighted": not unweighted,
                **({} if rehearsals is None else {"rehearsals": rehearsals}),
                **({} if model is None else {"family": model.family, "rows": model.rows}),
                "estimates": estimate_values(found if model is None else model.coefficients, level),
            }
        )
    elif statistic == "glm":
        echo(str(found).splitlines()[0])
        echo(estimate_lines(found.coefficients, level, ""))
    else:
        echo(estimate_lines(found, level, " ".join((statistic, *columns))))


def _check_call(statistic: str, columns: Sequence[str], given: dict[str, Any]) -> None:
    """Refuse options that the statistic does not take: they would be without effect."""
    shape, options = _TAKES[statistic]
    wrong = [
        name for name, value in given.items() if value not in (None, ()) and name not in options
    ]
    if wrong:
        raise click.UsageError(
            f"{statistic} takes no --{wrong[0]}"
            + (f"; it takes --{', --'.join(sorted(options))}" if options else "")
        )
    allowed = _COUNTS.get(shape)
    if (
        (allowed is not None and len(columns) not in allowed)
        or (statistic == "corr" and len(columns) == 1)
        or (statistic == "certificate" and not columns)
    ):
        raise click.UsageError(f"expected: counterpoise analyse FOLDER {statistic} {shape}")
    if statistic == "total" and given["category"] is not None and not columns:
        raise click.UsageError(
            "--category: of which column? counterpoise analyse FOLDER total COLUMN"
        )


def _total(release: Release, columns: Sequence[str], given: dict[str, Any]) -> Any:
    name = columns[0] if columns else None
    return release.total(name, _category(release, name, given["category"]), given["by"] or None)


def _proportion(release: Release, columns: Sequence[str], given: dict[str, Any]) -> Any:
    category = _category(release, columns[0], given["category"])
    return release.proportion(columns[0], category, given["by"] or None)


def _histogram(release: Release, columns: Sequence[str], given: dict[str, Any]) -> Any:
    bins = None if given["bins"] is None else _edges(release.schema[columns[0]], given["bins"])
    return release.histogram(columns[0], bins, given["by"] or None)


def _glm(release: Release, columns: Sequence[str], given: dict[str, Any]) -> Any:
    prior = given["prior-deviation"]
    stated = {} if prior is None else {"prior_deviation": prior}
    return release.glm(columns[0], given["family"] or "auto", **stated)


_STATISTICS: dict[str, Callable[[Release, Sequence[str], dict[str, Any]], Any]] = {
    "mean": lambda release, columns, given: release.mean(columns[0], given["by"] or None),
    "total": _total,
    "proportion": _proportion,
    "quantile": lambda release, columns, given: release.quantile(
        columns[0], 0.5 if given["at"] is None else given["at"], given["by"] or None
    ),
    "histogram": _histogram,
    "crosstab": lambda release, columns, given: release.crosstab(
        columns[0], columns[1], given["of"] or "all"
    ),
    "corr": lambda release, columns, given: release.corr(*columns),
    "glm": _glm,
    "effect": lambda release, columns, given: release.effect(*columns),
    "certificate": lambda release, columns, given: release.certificate(
        columns[0],
        given["loss"] or "logistic",
        1.0 if given["norm"] is None else given["norm"],
        list(columns[1:]) or None,
        0.05 if given["failure"] is None else given["failure"],
        given["weighted"],
    ),
}


def _category(release: Release, name: str | None, text: str | None) -> Any:
    """A category from its text: `3` is the number where the categories are numbers."""
    if name is None or text is None:
        return None
    for category in release.schema[name].categories or ():
        if str(category).casefold() == text.casefold() and (
            isinstance(category, bool) or str(category) == text
        ):
            return category
    return text


def _edges(column: Column, text: str) -> list[Any]:
    """Edges in the values of a column: numbers, dates or moments."""
    readers: dict[str, Callable[[str], Any]] = {
        "integer": int,
        "date": date.fromisoformat,
        "datetime": datetime.fromisoformat,
    }
    read = readers.get(column.kind, float)
    try:
        return [read(part.strip()) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--bins: expected edges of column {column.name!r}, which is {column.kind}, "
            "with commas between them"
        ) from None


def _is_weight(name: str) -> bool:
    return name == "weight" or name.startswith("weight_")
