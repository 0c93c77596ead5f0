"""Methods by name: one registry a room, open to third parties by entry point.

A distribution that declares an entry point in the group `counterpoise.<room>` adds its method
to the room without any change here. Its name is known without importing it; the method itself is
imported when it is asked for.
"""

import difflib
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from counterpoise.arguments import instance_of, plain_text
from counterpoise.errors import MethodError

Method = TypeVar("Method")


def only_as_instance(method: Any) -> str:
    """How to give a method that its name alone does not make; empty where the name will do.

    A class says so in its attribute `only_as_instance`.

    >>> only_as_instance(object)
    ''
    """
    return str(getattr(method, "only_as_instance", ""))


def plugins(room: str) -> list[str]:
    """The names that other distributions add to a room, sorted; none of them is imported.

    >>> plugins("greetings")
    []
    """
    return sorted({found.name for found in entry_points(group=f"counterpoise.{room}")})


class Registry(Generic[Method]):
    """The methods of a room, found by name.

    >>> greetings: Registry[Any] = Registry("greetings")
    >>> @greetings.register("polite")
    ... class Polite:
    ...     pass
    >>> greetings.get("polite") is Polite
    True
    >>> greetings.get("polit")
    Traceback (most recent call last):
    counterpoise.errors.MethodError: there is no method 'polit' among greetings; did you mean ...
    """

    def __init__(self, room: str, needs: tuple[str, ...] = ("fit",)):
        self.room = room
        self.needs = needs  # what every method of the room has
        self._methods: dict[str, type[Method]] = {}

    def register(self, name: str) -> Callable[[type[Method]], type[Method]]:
        """A decorator that makes a class known by `name`."""

        name = self._checked_name(name)

        def known(method: type[Method]) -> type[Method]:
            self._methods[name] = method
            return method

        return known

    def get(self, name: str) -> type[Method]:
        """The method called `name`, ours or a third party's."""
        name = self._checked_name(name)
        if name in self._methods:
            return self._methods[name]
        for found in entry_points(group=f"counterpoise.{self.room}", name=name):
            return self._loaded(found)
        near = difflib.get_close_matches(name, self.by_name()) or self.by_name()
        hint = ", ".join(repr(option) for option in near)
        raise MethodError(f"there is no method {name!r} among {self.room}; did you mean {hint}?")

    def make(self, method: str | Method, **parameters: Any) -> Method:
        """A method from its name and parameters; a method that is one already stays as it is."""
        if isinstance(method, type):
            raise MethodError(
                f"{self.room}: expected a name or an instance; write {method.__name__}()"
            )
        if not isinstance(method, str):
            if not all(hasattr(method, need) for need in self.needs):
                raise MethodError(
                    f"{self.room}: expected a name or an instance, not "
                    f"{'None' if method is None else f'a {type(method).__name__}'}; the names are "
                    f"{', '.join(map(repr, self.by_name()))}"
                )
            return method
        method = plain_text(method)
        try:
            return self.get(method)(**parameters)
        except TypeError:
            raise MethodError(
                f"method {method!r} of {self.room} does not take {', '.join(sorted(parameters))}"
            ) from None

    def _checked_name(self, name: Any) -> str:
        return plain_text(instance_of(self.room, name, str, "the name of a method"))

    def by_name(self) -> list[str]:
        """The names that are enough to make a method, sorted."""
        return sorted(name for name in self if not only_as_instance(self._methods.get(name)))

    def name_of(self, method: Method) -> str:
        """The name that a method is registered under, or its class's name."""
        for name, known in self._methods.items():
            if type(method) is known:
                return name
        # A package may hand its method out from elsewhere than where it is defined, so the class
        # itself is compared; packages that it cannot come from are not imported for that.
        package = type(method).__module__.partition(".")[0]
        for found in entry_points(group=f"counterpoise.{self.room}"):
            is_near = found.value.partition(":")[0].partition(".")[0] == package
            if is_near and self._loaded(found) is type(method):
                return found.name
        return type(method).__name__

    def __iter__(self) -> Iterator[str]:
        yield from self._methods
        yield from (name for name in plugins(self.room) if name not in self._methods)

    def _loaded(self, found: EntryPoint) -> type[Method]:
        try:
            method = found.load()
        except Exception as error:
            raise MethodError(
                f"the plug-in {found.name!r} of {self.room} cannot be imported from "
                f"{found.value!r} ({type(error).__name__}); install it anew, or remove it"
            ) from None
        if not isinstance(method, type):
            raise MethodError(
                f"the plug-in {found.name!r} of {self.room} is not a class; its entry point has to "
                "name one"
            )
        return method
