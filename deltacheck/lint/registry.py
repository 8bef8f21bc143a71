"""All lints, by code. A code is stable: it is never given to another lint."""

from __future__ import annotations

from typing import Union

from deltacheck.lint import expressions, migrations, naming, portability, types
from deltacheck.lint.finding import Lint, Severity
from deltacheck.lint.subjects import Constraint, Migration

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

CONSTRAINT_LINTS: tuple[Lint[Constraint], ...] = (
    Lint("DC101", "null-violates", _INFO, expressions.null_violates),
    Lint("DC102", "nan-passes", _INFO, expressions.nan_passes),
    Lint("DC103", "compares-with-null", _ERROR, expressions.compares_with_null),
    Lint("DC104", "not-in-with-null", _ERROR, expressions.not_in_with_null),
    Lint("DC105", "null-in-list", _WARNING, expressions.null_in_list),
    Lint("DC106", "or-beside-and", _WARNING, expressions.or_beside_and),
    Lint("DC107", "timestamp-without-zone", _WARNING, expressions.timestamp_without_zone),
    Lint("DC108", "uses-clock", _WARNING, expressions.uses_clock),
    Lint("DC109", "doubled-quote", _INFO, expressions.doubled_quote),
    Lint("DC110", "never-holds", _ERROR, expressions.never_holds),
    Lint("DC111", "always-holds", _WARNING, expressions.always_holds),
    Lint("DC112", "type-differs", _WARNING, types.type_differs),
    Lint("DC113", "read-otherwise", _INFO, portability.read_otherwise),
    Lint("DC114", "not-readable", _INFO, portability.not_readable),
    Lint("DC201", "name-says-nothing", _WARNING, naming.says_nothing),
    Lint("DC202", "name-lower-cased", _INFO, naming.lower_cased),
    Lint("DC203", "name-needs-quoting", _INFO, naming.needs_quoting),
    Lint("DC204", "name-spelled-otherwise", _WARNING, naming.spelled_otherwise),
)
"""What is looked for in each rule, and in each constraint of a migration."""

MIGRATION_LINTS: tuple[Lint[Migration], ...] = (
    Lint("DC301", "not-undone", _WARNING, migrations.not_undone),
    Lint("DC302", "edited-after-applied", _ERROR, migrations.edited),
    Lint("DC303", "execute-changes-constraints", _WARNING, migrations.past_deltacheck),
)
"""What is looked for in each migration."""

MALFORMED = ("DC001", "malformed-declaration")
"""The code and the name of what cannot be read: a file in ``constraints/``, a rule, a name."""

BROKEN_HISTORY = ("DC002", "broken-history")
"""The code and the name of migrations that do not make one readable chain."""

LINTS: tuple[Union[Lint[Constraint], Lint[Migration]], ...] = (*CONSTRAINT_LINTS, *MIGRATION_LINTS)
"""All that can be ignored with a comment."""
