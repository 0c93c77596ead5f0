"""Questions that analysts will ask, stated in advance: public, and measured first.

A question is one of the analyst's own calls: a model by formula, a mean by groups, a table of two
columns, an average effect of a treatment. It is written as a text,

    readmitted ~ age + stay * ward
    poisson: visits ~ age
    mean(charges) by ward + sex
    ward x sex
    effect(treated) on readmitted given age + stay

or made by the methods of `Question`, and is data: nothing in it is run. A column whose name is not
plain stands in backticks. What a question needs of a table is for others to say; here is what it
is, which columns it joins, and whether a schema can answer it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoise.arguments import column_name, one_of, settle, shown
from counterpoise.disk import plainly, require_file
from counterpoise.errors import AnalysisError, MethodError, SchemaError
from counterpoise.formulas.families import MULTINOMIAL, choose_family
from counterpoise.formulas.likelihood import FAMILIES
from counterpoise.formulas.matrices import ReadFormula, read_formula
from counterpoise.schema import Schema
from counterpoise.schema.expression_trees import Name, written

MOST_QUESTIONS = 100
KINDS = ("model", "mean", "table", "effect")
FORMS = (
    "a formula such as 'y ~ x', 'poisson: y ~ x', 'mean(y) by g', 'a x b', or "
    "'effect(t) on y given x'"
)

_NAME = r"(?:`(?:[^`\\]|\\[`\\])+`|[^\W\d][\w.]*)"
_FAMILY = re.compile(rf"({'|'.join((*FAMILIES, MULTINOMIAL))})\s*:\s*(.*)", re.DOTALL)
_MEAN = re.compile(rf"mean\(\s*({_NAME})\s*\)(?:\s+by\s+({_NAME}(?:\s*\+\s*{_NAME})*))?")
_TABLE = re.compile(rf"({_NAME})\s+x\s+({_NAME})")
_EFFECT = re.compile(rf"effect\(\s*({_NAME})\s*\)\s+on\s+({_NAME})\s+given\s+(.*)", re.DOTALL)


@dataclass(frozen=True)
class Question:
    """What will be asked of a release; `str` gives it as a text, and `read` takes it back.

    `columns` are the outcome of a mean, the two of a table, or the treatment and the outcome of an
    effect. `formula` is that of a model, or what an effect is adjusted for.

    >>> Question.mean("charges", by="ward")
    Question('mean(charges) by ward')
    >>> Question.read("mean(charges) by ward") == Question.mean("charges", by="ward")
    True
    """

    kind: str
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    formula: str = ""
    family: str = "auto"

    def __post_init__(self) -> None:
        settle(self, kind=one_of("kind", self.kind, KINDS))

    @classmethod
    def model(cls, formula: str, family: str = "auto") -> Question:
        """A regression, as `release.glm(formula, family)` fits it."""
        family = one_of("family", family, ("auto", *FAMILIES, MULTINOMIAL))
        return cls("model", formula=_text("formula", formula), family=family)

    @classmethod
    def mean(cls, column: str, by: str | Sequence[str] | None = None) -> Question:
        """A mean, as `release.mean(column, by)` estimates it."""
        return cls("mean", (column_name("column", column),), _names("by", by))

    @classmethod
    def table(cls, row: str, column: str) -> Question:
        """A table of two columns, as `release.crosstab(row, column)` estimates it."""
        return cls("table", (column_name("row", row), column_name("column", column)))

    @classmethod
    def effect(cls, treatment: str, outcome: str, given: str) -> Question:
        """An average effect, as `release.effect(treatment, outcome, given)` estimates it."""
        columns = (column_name("treatment", treatment), column_name("outcome", outcome))
        return cls("effect", columns, formula=_text("given", given))

    @classmethod
    def read(cls, question: Any) -> Question:
        """A question as it is, or read from a text."""
        if isinstance(question, Question):
            return question
        text = _text("questions", question)
        if found := _EFFECT.fullmatch(text):
            return cls.effect(_unquoted(found[1]), _unquoted(found[2]), found[3])
        if found := _MEAN.fullmatch(text):
            by = re.findall(_NAME, found[2] or "")
            return cls.mean(_unquoted(found[1]), [_unquoted(name) for name in by])
        if found := _TABLE.fullmatch(text):
            return cls.table(_unquoted(found[1]), _unquoted(found[2]))
        if "~" not in text:
            raise MethodError(f"questions: expected {FORMS}, not {shown(text)}")
        if found := _FAMILY.fullmatch(text):
            return cls.model(found[2], found[1])
        return cls.model(text)

    def __str__(self) -> str:
        names = [written(Name(name)) for name in self.columns]
        match self.kind:
            case "model":
                return self.formula if self.family == "auto" else f"{self.family}: {self.formula}"
            case "mean":
                by = " + ".join(written(Name(name)) for name in self.by)
                return f"mean({names[0]})" + (f" by {by}" if by else "")
            case "table":
                return f"{names[0]} x {names[1]}"
        return f"effect({names[0]}) on {names[1]} given {self.formula}"

    def __repr__(self) -> str:
        return f"Question({str(self)!r})"

    def joined(self, schema: Schema) -> tuple[str, ...]:
        """The columns that the question joins, in the order of the schema; they have to fit it.

        >>> from counterpoise.schema import Column
        >>> schema = Schema([Column.boolean("ill"), Column.integer("age", 0, 99)])
        >>> Question.read("ill ~ log1p(age)").joined(schema)
        ('ill', 'age')
        """
        try:
            needed = self._needed(schema)
        except (AnalysisError, SchemaError) as problem:
            raise MethodError(f"questions: {str(self)!r}: {problem}") from None
        for name in sorted(needed):
            if not schema[name].is_modelled:
                raise MethodError(
                    f"questions: {str(self)!r}: {name!r} is not asked of the private table; name "
                    "columns that are neither derived nor identifiers"
                )
        return tuple(name for name in schema.names if name in needed)

    def models(self, schema: Schema) -> tuple[tuple[ReadFormula, str], ...]:
        """The regressions that it needs, each with its family.

        A model is one; an effect has that of the treatment, then that of the outcome.
        """
        return tuple(
            (read, choose_family(schema, read.targets, self.family)) for read in self._read(schema)
        )

    def _read(self, schema: Schema) -> list[ReadFormula]:
        formulas = [self.formula] if self.kind == "model" else []
        if self.kind == "effect":
            formulas = [f"{written(Name(name))} ~ {self.formula}" for name in self.columns]
        return [read_formula(formula, schema) for formula in formulas]

    def _needed(self, schema: Schema) -> set[str]:
        """The columns, after all that can be wrong with them."""
        for name in (*self.columns, *self.by):
            schema[name]
        if len(set(self.columns)) < len(self.columns) or set(self.columns) & set(self.by):
            raise AnalysisError("expected different columns")
        if self.kind in ("mean", "effect"):
            outcome = schema[self.columns[-1]]
            if not (outcome.is_numeric or outcome.category_type == "boolean"):
                is_pair = outcome.is_complete and outcome.ungrouped.cells == 2
                way_out = ", or have it declared boolean in the schema of a release" * is_pair
                raise AnalysisError(
                    f"column {outcome.name!r} is {outcome.kind} and has no mean; ask for a table"
                    f"{way_out}"
                )
        read = self._read(schema)
        targets = {name for each in read for name in each.targets}
        # Categories that are still to be paid for may turn out to fit.
        if all(schema[name].is_complete for name in targets):
            families = [family for _, family in self.models(schema)]
            if self.kind == "effect" and families[0] != "binomial":
                raise AnalysisError(
                    f"column {self.columns[0]!r}: a treatment is true or false, or has two "
                    "categories"
                )
        used = {name for each in read for name in each.used}
        if self.kind == "effect" and used & set(self.columns):
            raise AnalysisError("an effect is adjusted for neither its treatment nor its outcome")
        return {*self.columns, *self.by, *used, *targets}


def read_questions(questions: Any, schema: Schema | None = None) -> tuple[str, ...]:
    """Questions as texts, each once; with a schema they have to fit it.

    >>> read_questions([Question.table("ward", "sex"), "ward x sex", "age ~ 1"])
    ('ward x sex', 'age ~ 1')
    """
    if questions is None:
        return ()
    if isinstance(questions, str | bytes | Question) or not isinstance(questions, Iterable):
        raise MethodError(f"questions: expected a list of questions, not {shown(questions)}")
    found = list(dict.fromkeys(Question.read(question) for question in questions))
    if len(found) > MOST_QUESTIONS:
        raise MethodError(f"questions: expected at most {MOST_QUESTIONS}")
    if schema is not None:
        for question in found:
            question.joined(schema)
    return tuple(map(str, found))


def questions_in(path: Path) -> tuple[str, ...]:
    """The questions of a text file, one a line; lines that are empty or begin with # are none."""
    require_file(path, MethodError)
    try:
        with plainly(path, "read", MethodError):
            lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise MethodError(f"questions: {path} is no text in UTF-8") from None
    found = [line.strip() for line in lines]
    asked = tuple(line for line in found if line and not line.startswith("#"))
    if not asked:
        raise MethodError(f"questions: {path} has none; write one a line, such as 'mean(y) by g'")
    return asked


def _text(name: str, value: Any) -> str:
    text = str(value).strip() if isinstance(value, str) else ""
    if not text:
        raise MethodError(f"{name}: expected {FORMS}, not {shown(value)}")
    # One line, however it was written: it stands in lists and in files of a question a line.
    return re.sub(r"\s*[\r\n]+\s*", " ", text)


def _names(name: str, value: Any) -> tuple[str, ...]:
    if value is None or isinstance(value, str):
        return () if value is None else (column_name(name, value),)
    if not isinstance(value, Iterable):
        raise MethodError(f"{name}: expected names of columns, not {shown(value)}")
    return tuple(dict.fromkeys(column_name(name, each) for each in value))


def _unquoted(name: str) -> str:
    if not name.startswith("`"):
        return name
    return re.sub(r"\\([`\\])", r"\1", name[1:-1])
