"""Whether a model was asked about in advance, so that what its coefficients depend on was summed.

A release whose card lists questions has, for each regression among them that was measured, the sum
of its scores in the weights. Matched, they move every coefficient to the private table's, whatever
columns were counted together; so these are measured, in this very model and in no other. Where
the sum moves them and does not carry them, they are implied. The questions
are texts such as "ill ~ age * ward", or "poisson: visits ~ age" with a family.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from counterpoise.analysis.support import IMPLIED, MEASURED
from counterpoise.bundle.card import RETARGETED
from counterpoise.errors import CounterpoiseError
from counterpoise.formulas.matrices import ReadFormula, read_formula
from counterpoise.formulas.questions import Question

if TYPE_CHECKING:
    from counterpoise.bundle.release import Release

_WITH_FAMILY = re.compile(r"(gaussian|binomial|poisson|multinomial)\s*:\s*(.*)", re.DOTALL)


def was_asked(release: Release, read: ReadFormula, family: str, usual: str) -> str:
    """The support that the sum of this model's scores gives it; empty where there was none.

    `usual` is the family of its target.
    """
    questions = _summed_questions(release).items()
    found = (
        support
        for text, support in questions
        if "~" in text and _is_same(text, read, family, usual)
    )
    return next(found, "")


def effect_was_asked(release: Release, question: Question) -> str:
    """The support that the sum of this very effect's score gives it; empty without one."""
    return _summed_questions(release).get(str(question), "")


def _summed_questions(release: Release) -> dict[str, str]:
    """The questions that something was summed for: measured, or implied where it carries little."""
    weights, questions = release.card.get("weights", {}), release.card.get("questions")
    # Weights that were replaced, set aside, or turned to another population match no sums.
    turned = weights.get("reweighted") or release.card.get(RETARGETED)
    if turned or weights.get("method") == "uniform":
        return {}
    if not isinstance(questions, list):
        return {}
    return {
        str(each.get("question")): MEASURED if each.get("measured") else IMPLIED
        for each in questions
        if each.get("measured") or "assumed" in each
    }


def _is_same(text: str, read: ReadFormula, family: str, usual: str) -> bool:
    stated = _WITH_FAMILY.fullmatch(text)
    try:
        asked = read_formula(stated[2] if stated else text, read.schema)
    except CounterpoiseError:
        return False
    sides = ((asked.left, read.left), (asked.right, read.right))
    same = all({term.key for term in one} == {term.key for term in two} for one, two in sides)
    return same and (stated[1] if stated else usual) == family
