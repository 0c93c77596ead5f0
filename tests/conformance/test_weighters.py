"""What every registered weighter promises, whoever wrote it; see `counterpoise.testing`."""

import pytest

from counterpoise.testing import WEIGHTER_RULES
from counterpoise.weights import WEIGHTERS
from tests.shorter import shorter


@pytest.mark.parametrize("rule", WEIGHTER_RULES, ids=str)
@pytest.mark.parametrize("method", sorted(WEIGHTERS))
def test_every_registered_weighter_keeps_to_every_rule(method, rule):
    rule.hold(shorter(method))
