"""The models behind a release, kept with it: new rows and their weights can be drawn later, free.

A model is saved as named arrays and read back by its class, which is found by the name of its
method in the registry: the class that the method's `fit` is annotated to return, or that the
method names in `model_type`. So a third party's method needs an entry point and a model with
`to_arrays` and `from_arrays`, and nothing else. What is derived at the end of a fit may be left
out of the arrays: AIM's model forgets the bounds on marginals that it did not measure. A function
cannot be saved, nor can weights that know one table only; a release then says that it has no model.
Methods are imported when a model is made or read: whoever loads a release to ask it needs none.
"""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from counterpoise.bundle.archive import MOST_BYTES, read_archive, write_archive
from counterpoise.disk import hash_of, plainly
from counterpoise.errors import BundleError, CounterpoiseError, MethodError
from counterpoise.registry import Registry
from counterpoise.schema import Schema

if TYPE_CHECKING:
    from counterpoise.synthesizers import Model, Synthesizer
    from counterpoise.weights import Weighter, WeightModel

_SYNTHESIZER, _WEIGHTS = "synthesizer.", "weights."


def model_type(method: type) -> type | None:
    """The class of the models that a method makes; None when the method does not say.

    >>> from counterpoise.weights import Moments
    >>> model_type(Moments).__name__
    'MomentModel'
    """
    named = getattr(method, "model_type", None)
    if isinstance(named, type):
        return named
    fit = getattr(method, "fit", None)
    if fit is None:
        return None
    found = inspect.signature(fit).return_annotation
    if isinstance(found, str):
        found = getattr(sys.modules.get(fit.__module__), found.strip("'\""), None)
    return found if isinstance(found, type) else None


def model_arrays(registry: Registry[Any], method: Any, model: Any) -> dict[str, np.ndarray]:
    """A model as arrays that `read_model` reads back; MethodError where that cannot be."""
    name = registry.name_of(method)
    arrays = dict(model.to_arrays())
    if not isinstance(model, _kind(registry, name)):
        raise MethodError(f"the model of {name!r} is not of the class that its method names")
    if any(np.asarray(array).dtype.hasobject for array in arrays.values()):
        raise MethodError(f"the model of {name!r} holds more than numbers and texts")
    if not all(map(_are_finite, arrays.values())):
        raise MethodError(f"the model of {name!r} holds numbers that are not finite")
    return arrays


def read_model(
    registry: Registry[Any],
    name: str,
    schema: Schema,
    arrays: Mapping[str, np.ndarray],
    **options: Any,
) -> Any:
    """The inverse of `model_arrays`."""
    kind: Any = _kind(registry, name)
    with fitting(f"the saved model of {name!r}"):
        if not all(map(_are_finite, arrays.values())):
            raise BundleError(f"the saved model of {name!r} holds numbers that are not finite")
        return kind.from_arrays(schema, arrays, **options)


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """Turn what a saved model raises, when it is read or used, into a BundleError about it.

    The class may be a third party's, and the arrays another method's, or forged.
    """
    try:
        yield
    except (CounterpoiseError, OSError, MemoryError):
        raise
    except Exception:
        raise BundleError(f"{what} does not fit its method; get the release again") from None


def _are_finite(array: np.ndarray) -> bool:
    found = np.asarray(array)
    return found.dtype.kind not in "fc" or bool(np.isfinite(found).all())


def _kind(registry: Registry[Any], name: str) -> type[Any]:
    kind = model_type(registry.get(name))
    if kind is None or not hasattr(kind, "from_arrays"):
        raise MethodError(f"the model of {name!r} cannot be read back: it has no from_arrays")
    return kind


@dataclass(frozen=True, eq=False)
class Models:
    """A synthesizer's model and the weights' model, and their arrays when they can be saved.

    `problem` says why they cannot.
    """

    synthesizer: Model
    weights: WeightModel
    arrays: Mapping[str, np.ndarray] | None
    problem: str | None = None

    @classmethod
    def of(
        cls, synthesizer: Synthesizer, model: Model, weighter: Weighter, weight_model: WeightModel
    ) -> Models:
        """The models of two methods."""
        from counterpoise.synthesizers import SYNTHESIZERS
        from counterpoise.weights import WEIGHTERS

        try:
            if not getattr(weighter, "weighs_new_rows", True):
                raise MethodError(
                    f"the weights {WEIGHTERS.name_of(weighter)!r} are of these rows alone"
                )
            arrays = {
                prefix + name: array
                for prefix, found in (
                    (_SYNTHESIZER, model_arrays(SYNTHESIZERS, synthesizer, model)),
                    (_WEIGHTS, model_arrays(WEIGHTERS, weighter, weight_model)),
                )
                for name, array in found.items()
            }
            if sum(np.asarray(array).nbytes for array in arrays.values()) > MOST_BYTES // 2:
                raise MethodError(f"a saved model takes at most {MOST_BYTES // 2:,} bytes")
        except MethodError as error:
            return cls(model, weight_model, None, str(error))
        return cls(model, weight_model, arrays)

    def write(self, path: Path) -> None:
        """Write both models to one file."""
        assert self.arrays is not None
        write_archive(path, self.arrays)


@dataclass(frozen=True)
class SavedModels:
    """Models in a file of a bundle, read when they are asked for."""

    path: Path
    digest: str

    def open(self, schema: Schema, card: Mapping[str, Any]) -> Models:
        """Read both models; their methods have to be installed."""
        from counterpoise.synthesizers import SYNTHESIZERS
        from counterpoise.weights import WEIGHTERS

        self._check()
        arrays, _ = read_archive(self.path, MOST_BYTES)
        synthesizer = read_model(
            SYNTHESIZERS,
            card["synthesizer"]["method"],
            schema,
            _part(arrays, _SYNTHESIZER),
            private=bool(card["ledger"]["private"]),
        )
        weights = read_model(WEIGHTERS, card["weights"]["method"], schema, _part(arrays, _WEIGHTS))
        return Models(synthesizer, weights, arrays)

    def write(self, path: Path) -> None:
        """Copy the file."""
        self._check()
        shutil.copyfile(self.path, path)

    def _check(self) -> None:
        with plainly(self.path, "read"):
            if not self.path.is_file():
                raise BundleError(f"{self.path} is no longer there; load the release again")
            if hash_of(self.path) != self.digest:
                raise BundleError(f"{self.path} was changed; get the release again")


def _part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
