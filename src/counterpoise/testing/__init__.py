"""The rules that every method obeys, for whoever writes one: no other test library is needed.

`check_synthesizer` and `check_weighter` hold a method to all of its rules and raise `BrokenRule`
at the first that it breaks, with the rule's name and sentence. The rules are values, listed in
`SYNTHESIZER_RULES` and `WEIGHTER_RULES`, so that a test runner can take them one by one; our own
methods go through the same lists. A rule is held on generated tables and can show that a method
breaks it, never that no table exists on which it does.
"""

from counterpoise.testing.rules import BrokenRule, Rule
from counterpoise.testing.synthesizers import SYNTHESIZER_RULES, check_synthesizer
from counterpoise.testing.weighters import WEIGHTER_RULES, check_weighter

__all__ = [
    "SYNTHESIZER_RULES",
    "WEIGHTER_RULES",
    "BrokenRule",
    "Rule",
    "check_synthesizer",
    "check_weighter",
]
