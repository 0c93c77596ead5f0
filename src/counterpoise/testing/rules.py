"""A rule: a name, a sentence that can be read, and a check that says what it found instead.

A rule is written as a function of a method on trial. Its name is the rule's name, the first line
of its docstring the sentence. It calls `broken` where a method does not keep to it; an exception
that the method lets out where the rule expects none breaks the rule as well, whatever its class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from counterpoise.errors import MethodError


class BrokenRule(AssertionError):
    """A method does not keep to a rule; `rule` is its name."""

    def __init__(self, rule: str, sentence: str, method: str, found: str):
        self.rule = rule
        super().__init__(f"{method} breaks the rule {rule!r}: {sentence} But {found}.")


class _Finding(Exception):
    """What a check found; `Rule.hold` turns it into a `BrokenRule` with the rule's name."""


def broken(found: str) -> NoReturn:
    """Say what a method does instead of what the rule asks of it."""
    raise _Finding(found)


def require(holds: Any, found: str) -> None:
    """Go on if the claim holds; otherwise say what was found instead."""
    if not holds:
        broken(found)


@dataclass(frozen=True)
class Rule:
    """Something that every method of a kind promises."""

    name: str
    sentence: str
    check: Callable[[Any], None]
    trial: Callable[[Any], Any]  # puts a method, or its registered name, on trial

    def hold(self, method: Any) -> None:
        """Raise `BrokenRule` if the method, or the method of that name, breaks the rule."""
        trial = self.trial(method)
        try:
            self.check(trial)
        except _Finding as finding:
            raise self._broken_by(trial, str(finding)) from None
        except Exception as error:
            found = f"it let out {type(error).__name__}: {error}"
            raise self._broken_by(trial, found.rstrip(".")) from error

    def __str__(self) -> str:
        return self.name

    def _broken_by(self, trial: Any, found: str) -> BrokenRule:
        return BrokenRule(self.name, self.sentence, type(trial.method).__name__, found)


def rules_of(
    trial: Callable[[Any], Any], checks: Iterable[Callable[[Any], None]]
) -> tuple[Rule, ...]:
    """Functions as rules: the name and the first line of the docstring are theirs."""
    return tuple(
        Rule(check.__name__, (check.__doc__ or "").partition("\n")[0], check, trial)
        for check in checks
    )


def hold_all(rules: tuple[Rule, ...], method: Any, leave_out: Collection[str]) -> None:
    """Hold a method to rules in order, but for those that are left out by name."""
    names = [rule.name for rule in rules]
    for name in leave_out:
        if name not in names:
            raise MethodError(f"leave_out: there is no rule {name!r}; expected some of {names}")
    for rule in rules:
        if rule.name not in leave_out:
            rule.hold(method)
