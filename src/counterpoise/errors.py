"""The errors of Counterpoise: one family, one line each, with a way out.

A message names the column or the option, says what was expected, and how to put it right. It
never contains a private value, a count, or any fact that depends on the private rows; errors
raised by a dependency while it reads private rows are therefore replaced, never chained.
"""


class CounterpoiseError(Exception):
    """The root of the family; catch it to catch every error this package raises on purpose."""


class SchemaError(CounterpoiseError):
    """The schema is malformed, incomplete, or holds values that are not public knowledge."""


class TableError(CounterpoiseError):
    """A table cannot be read, or does not have the columns that its schema names."""


class BudgetError(CounterpoiseError):
    """A query does not fit what is left of the budget, or the budget does not allow its noise."""


class VaultError(CounterpoiseError):
    """A vault was asked for something it does not give: it is closed, or the query is not sound."""


class BundleError(CounterpoiseError):
    """A release on disk is missing, damaged, or written by a newer version."""


class MethodError(CounterpoiseError):
    """A method or one of its parameters is unknown or out of range."""


class AnalysisError(CounterpoiseError):
    """An analysis of a release does not fit its columns, or its weights should not be used."""


class CounterpoiseWarning(UserWarning):
    """Something that an analyst should know before trusting a result; filter it by this class."""
