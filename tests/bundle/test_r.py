"""A release in R: the lines that the documentation and the report show, run on a bundle.

They need `Rscript` and R's package survey; without them the tests that run R are skipped, and the
test by formula stays.
"""

import html
import os
import re
import shutil
import subprocess
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import counterpoise as cp
from counterpoise.report.snippets import Snippets

ESTIMATES = Path(__file__).parents[2] / "docs" / "methods" / "estimates.md"
REPLICATES = ESTIMATES.with_name("replicates.md")
ANALYST = Path(__file__).parents[2] / "docs" / "analyst.md"


def has_survey() -> bool:
    has = 'all(sapply(c("survey", "jsonlite"), requireNamespace, quietly = TRUE))'
    command = ["Rscript", "-e", f"quit(status = !{has})"]
    return (
        shutil.which("Rscript") is not None and not subprocess.run(command, check=False).returncode
    )


MORE_LINES = """
say("mean", c(m, SE(m), confint(m, df = R)))
by <- svyby(~ill, ~ward, design, svymean)
say("ill", c(by$illTRUE, SE(by)[, 2]))
ward <- svymean(~ward, design)
say("ward", c(ward, SE(ward)))
dose <- svymean(~dose, design, na.rm = TRUE)
say("dose", c(dose, SE(dose)))
median <- svyquantile(~age, design, 0.5, qrule = "math", ci = FALSE)$age[1]
design$variables$is_below <- as.numeric(design$variables$age <= median)
half <- qt(0.975, R) * as.numeric(SE(svymean(~is_below, design)))
ends <- svyquantile(~age, design, 0.5 + c(-1, 1) * half, qrule = "math", ci = FALSE)$age
say("median", c(median, ends))
exactly <- list(epsilon = 1e-14)
logistic <- svyglm(ill ~ age + ward, design, family = quasibinomial(), control = exactly)
say("logistic", c(coef(logistic), SE(logistic)))
linear <- svyglm(dose ~ age + ward, design)
say("linear", c(coef(linear), SE(linear)))
counts <- svyglm(age ~ ill, design, family = quasipoisson(), control = exactly)
say("counts", c(coef(counts), SE(counts)))
"""

needs_r = pytest.mark.skipif(
    not has_survey(), reason="needs Rscript and R's packages survey and jsonlite"
)


def documented(page: Path) -> list[str]:
    return re.findall(r"```r\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def from_csv(lines: str, csv_line: str) -> str:
    """The lines, reading the CSV file and not the Parquet file, which needs one package more."""
    swapped, times = re.subn(r"^\w+ <- .*arrow::read_parquet.*$", csv_line, lines, flags=re.M)
    assert times == 1
    return swapped


def of_all_digits(csv_line: str, folder: Path) -> str:
    """The line, reading the weights with all their digits."""
    return re.sub(r'"[^"]*synthetic\.csv"', f'"{folder.parent / "exact.csv"}"', csv_line.strip())


def csv_line_of(snippet: str) -> str:
    return re.search(r"^# (\w+ <- read.csv.*)$", snippet, re.M)[1]


def run(lines: str, folder: Path) -> dict[str, list[float]]:
    """The numbers that R prints as `name: number number`, all their digits."""
    head = (
        'say <- function(name, x) cat("\n", name, ": ", format(as.numeric(x), digits = 17), "\n")'
    )
    done = subprocess.run(
        ["Rscript", "-"],
        input=f"{head}\n{lines}",
        cwd=folder,
        encoding="utf-8",
        capture_output=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
        check=False,
    )
    assert not done.returncode, done.stderr
    said = re.findall(r"^ ?(\w+) : (.*)$", done.stdout, re.M)
    return {name: [float(number) for number in numbers.split()] for name, numbers in said}


def parts(found) -> list[float]:
    return [each.value for each in found] + [each.standard_error for each in found]


@needs_r
def test_the_documented_lines_give_the_same_numbers(folder):
    release = cp.load(folder)
    lines, csv_line = documented(ESTIMATES)
    read = of_all_digits(csv_line, folder)
    found = run(from_csv(lines, read) + MORE_LINES, folder.parent)
    mean, dose, median = release.mean("age"), release.mean("dose"), release.quantile("age")
    expected = {
        "mean": [mean.value, mean.standard_error, *mean.interval()],
        "ill": parts(release.mean("ill", by="ward")),
        "ward": parts(release.proportion("ward")),
        "dose": [dose.value, dose.standard_error],
        "median": [median.value, *median.interval()],
        "logistic": parts(release.glm("ill ~ age + ward").coefficients),
        "linear": parts(release.glm("dose ~ age + ward").coefficients),
        "counts": parts(release.glm("age ~ ill", "poisson").coefficients),
    }
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        # Both begin with the same digits, and add them up in another order.
        assert found[name] == pytest.approx(numbers, rel=1e-9), name


@needs_r
def test_the_lines_for_a_quick_look_run(folder):
    (lines,), (_, csv_line) = documented(ANALYST), documented(ESTIMATES)
    last = "say('mean', weighted.mean(table$age, table$weight))\n" + (
        "say('cells', prop.table(xtabs(weight ~ ward + smoker, table)))\n"
    )
    found = run(from_csv(lines, csv_line.strip()) + last, folder.parent)
    release = cp.load(folder)
    assert found["mean"] == pytest.approx([release.mean("age").value])
    cells = release.crosstab("ward", "smoker").pivot().to_numpy()
    assert found["cells"] == pytest.approx(cells.T.ravel())


@needs_r
def test_the_lines_of_the_report_run(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    lines = html.unescape(re.search(r'<pre id="r">(.*?)</pre>', page, re.DOTALL)[1])
    named = lines.replace("svymean(~age, d", "m <- svymean(~age, d").replace(
        "svyby(", "by <- svyby("
    )
    last = """
say('mean', c(m, SE(m)))
say('by', c(by$age, SE(by)))
model <- svyglm(dose ~ age, design)
say('model', c(coef(model), SE(model)))
"""
    read = of_all_digits(csv_line_of(lines), folder)
    found = run(from_csv(named, read) + last, folder)
    release = cp.load(folder)
    mean = release.mean("age")
    assert found["mean"] == pytest.approx([mean.value, mean.standard_error], rel=1e-9)
    assert found["by"] == pytest.approx(parts(release.mean("age", by="ward")), rel=1e-9)
    model = parts(release.glm("dose ~ age").coefficients)
    assert found["model"] == pytest.approx(model, rel=1e-9)


@needs_r
def test_the_part_of_the_way_is_fays_as_the_documentation_says(folder):
    said = re.search(r"That is Fay's method.*his coefficient is (.*?)\)\.", REPLICATES.read_text())
    assert said[1] == "1 - p"
    release, (lines, csv_line) = cp.load(folder), documented(ESTIMATES)
    own = 'type = "other", scale = card$replicates$scale, rscales = rep(1, R), mse = TRUE'
    assert own in lines
    fay = lines.replace(own, f'type = "Fay", rho = {said[1]}, mse = TRUE')
    p = f"p <- {release.card['replicates']['part']!r}\n"
    last = """
say("mean", SE(m))
say("model", SE(svyglm(dose ~ age, design)))
"""
    found = run(p + from_csv(fay, of_all_digits(csv_line, folder)) + last, folder.parent)
    assert found["mean"] == pytest.approx([release.mean("age").standard_error], rel=1e-9)
    errors = [each.standard_error for each in release.glm("dose ~ age").coefficients]
    assert found["model"] == pytest.approx(errors, rel=1e-9)


@needs_r
def test_names_that_r_would_not_take_are_quoted(tmp_path):
    names = ["the `mean` radius", "if", "größe", "2nd", "a.b", "back\\slash"]
    rows = pd.DataFrame({name: [1, 2, 6] for name in names})
    rows.assign(weight=[1, 1, 2]).to_csv(tmp_path / "synthetic.csv", index=False)
    lines = ""
    for place, name in enumerate(names):
        shown = Snippets(cp.Schema([cp.Column.integer(name, 0, 9)]), replicates=0).r
        last = f"m <- {shown.splitlines()[-1]}\nsay('m{place}', m)"
        lines += from_csv("\n".join([*shown.splitlines()[:-1], last, ""]), csv_line_of(shown))
    assert run(lines, tmp_path) == {f"m{place}": [3.75] for place in range(len(names))}


def test_the_columns_of_the_file_give_the_error_by_formula(folder):
    rows = duckdb.sql(f"FROM '{folder / 'synthetic.parquet'}'").df()
    columns = [name for name in rows if re.fullmatch(r"weight_[0-9]+", name)]
    assert len(columns) == 30

    def error(statistic) -> float:
        # svrepdesign(type = "other", scale = scale, rscales = 1, mse = TRUE)
        full = statistic(rows["weight"])
        return np.sqrt(scale * np.sum([(statistic(rows[name]) - full) ** 2 for name in columns]))

    release, known = cp.load(folder), rows["dose"].notna()
    scale = release.card["replicates"]["scale"]
    # These replicates go less than the whole way.
    assert scale > 1.5 / len(columns)
    expected = {
        "age": error(lambda weight: np.average(rows["age"], weights=weight)),
        "ill": error(lambda weight: np.average(rows["ill"], weights=weight)),
        "dose": error(lambda weight: np.average(rows["dose"][known], weights=weight[known])),
    }
    for name, value in expected.items():
        assert release.mean(name).standard_error == pytest.approx(value, rel=1e-9)
