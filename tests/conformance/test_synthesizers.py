"""What every registered synthesizer promises, whoever wrote it; see `counterpoise.testing`."""

import pytest

from counterpoise.synthesizers import SYNTHESIZERS
from counterpoise.testing import SYNTHESIZER_RULES


@pytest.mark.parametrize("rule", SYNTHESIZER_RULES, ids=str)
@pytest.mark.parametrize("method", sorted(SYNTHESIZERS))
def test_every_registered_synthesizer_keeps_to_every_rule(method, rule):
    rule.hold(method)
