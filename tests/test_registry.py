"""Methods by name: ours, and those that other distributions add by entry point."""

import pytest

from counterpoise.errors import MethodError
from counterpoise.registry import Registry, plugins
from tests.distributions import install

SOURCE = """
class Method:
    pass

def function():
    pass
"""


@pytest.fixture
def greetings():
    registry = Registry("greetings")
    registry.register("polite")(type("Polite", (), {}))
    return registry


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution of good and bad plug-ins."""
    install(
        tmp_path,
        monkeypatch,
        {
            "third_party_greetings/__init__.py": "from .method import Method, function",
            "third_party_greetings/method.py": SOURCE,
            "broken_greetings.py": "import no_such_module_anywhere",
        },
        {
            "counterpoise.greetings": [
                "warm = third_party_greetings:Method",
                "polite = third_party_greetings:Method",
                "missing = no_such_package:Method",
                "broken = broken_greetings:Method",
                "nameless = third_party_greetings:Absent",
                "function = third_party_greetings:function",
            ]
        },
    )


@pytest.mark.usefixtures("installed")
def test_plug_ins_are_listed_without_being_imported(greetings):
    assert plugins("greetings") == ["broken", "function", "missing", "nameless", "polite", "warm"]
    assert set(greetings) == {"polite", "warm", "missing", "broken", "nameless", "function"}
    assert "warm" in greetings.by_name()


@pytest.mark.usefixtures("installed")
def test_a_plug_in_is_found_by_its_name_and_ours_comes_first(greetings):
    assert greetings.get("warm").__module__ == "third_party_greetings.method"
    assert greetings.get("polite").__name__ == "Polite"
    assert type(greetings.make("warm")) is greetings.get("warm")


@pytest.mark.usefixtures("installed")
def test_an_instance_has_its_plug_ins_name_wherever_its_class_is_defined(greetings):
    """The entry point names the package, and the class is defined in a module of it."""
    assert greetings.name_of(greetings.make("warm")) == "warm"
    assert greetings.name_of(object()) == "object"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing", "cannot be imported from 'no_such_package:Method'"),
        ("broken", "cannot be imported from 'broken_greetings:Method'"),
        ("nameless", "cannot be imported from 'third_party_greetings:Absent'"),
        ("function", "is not a class"),
    ],
)
def test_a_bad_plug_in_is_named_and_harms_no_other(greetings, name, problem):
    with pytest.raises(MethodError, match=f"the plug-in '{name}' of greetings {problem}"):
        greetings.get(name)
    assert greetings.get("warm").__name__ == "Method"
