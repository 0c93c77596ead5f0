"""The file of an account: its terms and its charges in order, each with a digest of all before it.

A file is read whole and believed whole, or not at all: a charge that was changed, left out, put in
or moved breaks the chain of digests, and what is cut off at the end is missed by the digest that
the file ends with. That finds damage and careless editing; who means to forge a file can work out
the digests, and who puts an older copy in its place has an account that forgot. It holds spends,
dates and numbers of releases: nothing of any row, and no path. [PRIVACY: ground rule 10]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from counterpoise.vault.budget import Budget
from counterpoise.vault.spends import Spend, require_keys, text

FORMAT = 1


@dataclass(frozen=True)
class Terms:
    """What an account was created with, once and for all."""

    id: str
    name: str
    created: str
    budget: Budget
    threshold_delta: float

    def to_dict(self) -> dict[str, Any]:
        """The terms as JSON values."""
        return asdict(self) | {"budget": self.budget.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Terms:
        """The inverse of `to_dict`; anything else is refused."""
        keys = {"id", "name", "created", "budget", "threshold_delta"}
        require_keys("an account", values, keys)
        return cls(
            text("id", values["id"]),
            text("name", values["name"]),
            _moment(values["created"]),
            Budget.from_dict(values["budget"]),
            values["threshold_delta"],
        )


@dataclass(frozen=True)
class Charge:
    """One spend of one release, and when it was charged."""

    release: str
    date: str
    spend: Spend

    def to_dict(self) -> dict[str, Any]:
        """The charge as JSON values."""
        return {"release": self.release, "date": self.date, "spend": self.spend.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Charge:
        """The inverse of `to_dict`; anything else is refused."""
        require_keys("a charge", values, {"release", "date", "spend"})
        spend = Spend.from_dict(values["spend"])
        return cls(text("release", values["release"]), _moment(values["date"]), spend)


@dataclass(frozen=True)
class Content:
    """All that an account's file says; `digests` has one for each charge."""

    terms: Terms
    charges: tuple[Charge, ...] = ()
    digests: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A digest of all of it."""
        return self.digests[-1] if self.digests else _digest("", self.terms.to_dict())

    def with_charge(self, charge: Charge) -> Content:
        """The same with one more charge."""
        digest = _digest(self.digest, charge.to_dict())
        return Content(self.terms, (*self.charges, charge), (*self.digests, digest))

    def to_bytes(self) -> bytes:
        """The content of the file: JSON, a line a charge."""
        lines = [
            json.dumps(charge.to_dict() | {"digest": digest}, allow_nan=False)
            for charge, digest in zip(self.charges, self.digests, strict=True)
        ]
        charges = "".join(f"\n  {line}," for line in lines).removesuffix(",")
        return (
            f'{{\n "format": {FORMAT},\n "account": {json.dumps(self.terms.to_dict())},\n'
            f' "charges": [{charges}\n ],\n "digest": "{self.digest}"\n}}\n'
        ).encode("ascii")

    @classmethod
    def from_bytes(cls, content: bytes) -> Content:
        """The inverse of `to_bytes`; ValueError, KeyError, TypeError or BudgetError for others."""
        values = json.loads(content.decode("ascii"))
        require_keys("an account's file", values, {"format", "account", "charges", "digest"})
        if values["format"] != FORMAT:
            raise ValueError("another format")
        terms = Terms.from_dict(values["account"])
        charges: list[Charge] = []
        digests: list[str] = []
        digest = cls(terms).digest
        for line in values["charges"]:
            stated = line.pop("digest")
            charge = Charge.from_dict(line)
            digest = _digest(digest, charge.to_dict())
            if digest != stated:
                raise ValueError("a charge that does not follow from those before it")
            charges.append(charge)
            digests.append(digest)
        if digest != values["digest"]:
            raise ValueError("the end is missing")
        return cls(terms, tuple(charges), tuple(digests))


def _digest(before: str, values: Mapping[str, Any]) -> str:
    told = f"{before} {json.dumps(values, sort_keys=True, allow_nan=False)}"
    return hashlib.sha256(told.encode("ascii")).hexdigest()


def _moment(value: Any) -> str:
    """A date as we write it, or an error."""
    return datetime.fromisoformat(text("date", value)).isoformat()
