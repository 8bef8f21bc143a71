"""Reading ``constraints/``: YAML files become rules, or an error with file, line and column.

What may stand in them is in ``file_models``; how YAML is read is in ``yaml_text``; what a
rule's expression may be is in ``expression``. Knows nothing of migrations, tables or Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from deltacheck.config import Project, expand
from deltacheck.errors import DeclarationError, IdentifierError, RuleFileError
from deltacheck.names import TableName
from deltacheck.rules.check_models import (
    BatchCheckDeclaration,
    CheckDeclaration,
    batch_check_of,
    table_check_of,
)
from deltacheck.rules.checks import BatchCheck, BrokenShare, TableCheck, Trend
from deltacheck.rules.expression import check_name
from deltacheck.rules.fields import did_you_mean
from deltacheck.rules.file_models import (
    Complaint,
    RuleDeclaration,
    RuleSetDeclaration,
    TableDeclaration,
    complaints,
    rule_of,
)
from deltacheck.rules.model import Origin, Rule, TableRules
from deltacheck.rules.quantities import MeasureKind
from deltacheck.rules.yaml_text import Document, Mark, Steps, read_documents, read_text

_SUFFIXES = (".yml", ".yaml")
_PLAIN_NAME = re.compile(r"(?:[\w-]+|`(?:[^`]|``)+`)(?:\.(?:[\w-]+|`(?:[^`]|``)+`))*")

_NAMED: Mapping[object, str] = {"rules": "rule", "batch": "batch check", "checks": "check"}
"""Keys under which names stand, and what has those names."""

_Model = TypeVar("_Model", bound=BaseModel)


def project_rules(project: Project) -> dict[TableName, TableRules]:
    """The rules of a project; none where it has no ``constraints/``.

    Raises:
        RuleFileError, ExpressionError: As for ``read_rules``.
    """
    return read_rules(project.constraints) if project.constraints.is_dir() else {}


def read_rules(
    folder: Path | str, *, environ: Mapping[str, str] | None = None
) -> dict[TableName, TableRules]:
    """Read all rule files of a folder and its sub-folders.

    Files that are neither ``.yml`` nor ``.yaml``, and hidden files and folders, are left
    alone.

    Args:
        folder: The project's ``constraints`` folder.
        environ: Environment variables for ``${NAME}`` and ``${NAME:-default}`` in names of
            tables; default: the process's own.

    Returns:
        The rules of each table, in the order of the files' names; an empty folder gives none.

    Raises:
        RuleFileError: The folder is missing, or a file is malformed.
        ExpressionError: A rule is not an expression that Delta can carry and enforce.
        IdentifierError: A name is not one that Spark or Delta can hold.

    Each error has ``path``, ``line`` and ``column``. All are ``DeclarationError``.
    """
    rules, problems = survey_rules(folder, environ=environ)
    if problems:
        first = problems[0]
        more = len(problems) - 1
        hint = first.hint
        if more:
            hint += f" ({more} more: `deltacheck lint` lists {'it' if more == 1 else 'them'}.)"
        raise _copy(first, f"{first.message.rstrip('.')}; nothing was done.", hint.strip())
    return rules


def survey_rules(
    folder: Path | str, *, environ: Mapping[str, str] | None = None
) -> tuple[dict[TableName, TableRules], tuple[DeclarationError, ...]]:
    """Read what can be read, and list everything that cannot.

    Arguments are those of ``read_rules``.

    Returns:
        The rules that are sound, and the errors in the order of files and lines.

    Raises:
        RuleFileError: The folder is missing.
    """
    root = Path(folder)
    if not root.is_dir():
        raise RuleFileError(
            f"There is no folder {root}; nothing was done.",
            hint="Make it, or name the right one as `constraints` in deltacheck.toml.",
            path=root,
        )
    survey = _Survey(os.environ if environ is None else environ)
    for path in _files(root):
        survey.file(path)
    for pending in survey.pending:
        survey.table(pending)
    survey.renamed_tables()
    return survey.tables, tuple(sorted(survey.problems, key=_place))


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if not hidden and path.suffix.lower() in _SUFFIXES and not path.is_dir():
            yield path


def _place(error: DeclarationError) -> tuple[str, int, int]:
    return str(error.path), error.line or 0, error.column or 0


def _copy(
    error: DeclarationError,
    message: str,
    hint: str,
    path: Path | None = None,
    mark: Mark | None = None,
) -> DeclarationError:
    return type(error)(
        message,
        hint=hint,
        table=error.table,
        rule=error.rule,
        path=path or error.path,
        line=mark.line if mark else error.line,
        column=mark.column if mark else error.column,
    )


@dataclass(frozen=True)
class _Place:
    """A document in a file, and what it is about: for messages."""

    path: Path
    document: Document
    subject: str
    table: str | None = None

    def origin(self, steps: Steps) -> Origin:
        mark = self.document.key_mark(steps)
        return Origin(self.path, mark.line, mark.column)

    def problem(
        self, steps: Steps, message: str, hint: str = "", *, at_key: bool = False
    ) -> RuleFileError:
        """An error about the value, or the key, to which the steps lead."""
        mark = self.document.key_mark(steps) if at_key else self.document.value_mark(steps)
        word = _NAMED.get(steps[0]) if len(steps) > 1 else None
        rule = None if word is None else str(steps[1])
        about = self.subject if rule is None else f"{self.subject}, {word} {rule!r}"
        return RuleFileError(
            f"{about}: {message}.",
            hint=hint,
            table=self.table,
            rule=rule,
            path=self.path,
            line=mark.line,
            column=mark.column,
        )


@dataclass(frozen=True)
class _RuleSet:
    name: str
    path: Path
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class _Pending:
    """A table's document that waits until all rule sets are known."""

    place: _Place
    name: TableName
    renamed_from: TableName | None
    declaration: TableDeclaration


@dataclass
class _Survey:
    """All files of a folder, as far as they have been read."""

    environ: Mapping[str, str]
    problems: list[DeclarationError] = field(default_factory=list)
    sets: dict[str, _RuleSet] = field(default_factory=dict)
    unsound: set[str] = field(default_factory=set)
    pending: list[_Pending] = field(default_factory=list)
    tables: dict[TableName, TableRules] = field(default_factory=dict)

    def file(self, path: Path) -> None:
        """Read one file's documents."""
        found: list[RuleFileError] = []
        documents: tuple[Document, ...] = ()
        try:
            documents = read_documents(read_text(path), path, found)
        except RuleFileError as error:
            found.append(error)
        if not found and not documents:
            found.append(
                RuleFileError(
                    "It is empty.",
                    hint="Write `table:` and `rules:`, or delete the file.",
                    path=path,
                    line=1,
                    column=1,
                )
            )
        if found:
            self.problems += found
            self.unsound.add(path.stem.casefold())
            return
        for document in documents:
            self.document(path, document, alone=len(documents) == 1)

    def document(self, path: Path, document: Document, *, alone: bool) -> None:
        """Read one document: a table's, or a rule set."""
        value = document.value
        place = _Place(path, document, f"Rule set {path.stem!r}")
        if not isinstance(value, dict):
            kind = "a list" if isinstance(value, list) else "a single text"
            self.problems.append(
                RuleFileError(
                    f"It holds {kind}, not keys and values.",
                    hint="Start with `table: shop.orders`, then `rules:`.",
                    path=path,
                    line=document.start.line,
                    column=document.start.column,
                )
            )
        elif "table" in value:
            text = value["table"]
            shown = text if isinstance(text, str) else "?"
            self.declared_table(_Place(path, document, f"Table {shown}", shown), value)
        elif alone:
            self.rule_set(place, value)
        else:
            self.unsound.add(path.stem.casefold())
            near = [key for key in value if did_you_mean(key, ["table"]).startswith("Did")]
            self.problems.append(
                RuleFileError(
                    "One of the file's documents has no `table:`.",
                    hint=f"Did you mean 'table' by {near[0]!r}?"
                    if near
                    else "Add it, or put the rule set into a file of its own.",
                    path=path,
                    line=document.start.line,
                    column=document.start.column,
                )
            )

    def declared_table(self, place: _Place, value: Mapping[str, object]) -> None:
        """Keep a table's document until all rule sets are known."""
        declaration = self.validated(TableDeclaration, place, value)
        if declaration is None:
            return
        name = self.table_name(place, "table", declaration.table)
        renamed_from = None
        if declaration.renamed_from:
            renamed_from = self.table_name(place, "renamed_from", declaration.renamed_from)
        if name is not None:
            place = _Place(place.path, place.document, f"Table {name}", str(name))
            if not declaration.model_fields_set & {"rules", "use", "batch", "checks"}:
                self.problems.append(
                    place.problem((), "it declares no rules", "Add `rules:`, or `use:`.")
                )
            self.pending.append(_Pending(place, name, renamed_from, declaration))

    def rule_set(self, place: _Place, value: Mapping[str, object]) -> None:
        """Keep a rule set, named by its file."""
        key = place.path.stem.casefold()
        declaration = self.validated(RuleSetDeclaration, place, value)
        if declaration is None:
            self.unsound.add(key)
            return
        rules = self.rules(place, declaration.rules)
        if key in self.sets:
            self.problems.append(
                place.problem(
                    (),
                    f"{self.sets[key].path} is a rule set of the same name",
                    "Rename one of the files, or add the missing `table:`.",
                )
            )
        else:
            self.sets[key] = _RuleSet(place.path.stem, place.path, rules)

    def validated(
        self, model: type[_Model], place: _Place, value: Mapping[str, object]
    ) -> _Model | None:
        """The declaration, or None when there were complaints."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for complaint in complaints(error, model):
                if model is RuleSetDeclaration:
                    complaint = _in_rule_set(complaint)
                self.problems.append(
                    place.problem(
                        complaint.steps,
                        complaint.message,
                        complaint.hint,
                        at_key=complaint.at_key,
                    )
                )
            return None

    def table_name(self, place: _Place, key: str, text: str) -> TableName | None:
        """The table that a text names, or None when it names none."""
        try:
            return self.named_table(place, (key,), text)
        except DeclarationError as error:
            self.problems.append(error)
            return None

    def named_table(self, place: _Place, steps: Steps, text: str) -> TableName:
        """The table that a text names.

        Raises:
            DeclarationError: It names none.
        """
        key = steps[-1]
        try:
            expanded = expand(text, self.environ)
        except KeyError as missing:
            name = missing.args[0]
            raise place.problem(
                steps,
                f"{key} needs the environment variable {name}, which is not set",
                f"Set it, or write ${{{name}:-default}}.",
            ) from None
        if not _PLAIN_NAME.fullmatch(expanded.strip()):
            raise place.problem(
                steps,
                f"{expanded!r} is not the name of a table",
                "Write table, schema.table or catalog.schema.table; a part with anything but "
                "letters, digits, _ and - stands between back-quotes.",
            )
        try:
            name = TableName.parse(expanded)
        except DeclarationError as error:
            mark = place.document.value_mark(steps)
            raise _copy(error, error.message, error.hint, place.path, mark) from None
        # A new migration names the table as the file does, not as one environment has it.
        return replace(name, template=text.strip()) if "${" in text else name

    def rules(self, place: _Place, declarations: Mapping[str, RuleDeclaration]) -> tuple[Rule, ...]:
        """The rules of one document that are sound, in its order."""
        rules = []
        for name, declaration in declarations.items():
            steps: Steps = ("rules", name)
            about = place.table or place.path.stem
            try:
                rule = rule_of(name, declaration, table=about, origin=place.origin(steps))
            except DeclarationError as error:
                key = "not_null" if declaration.not_null else "check"
                named = isinstance(error, IdentifierError)
                mark = (
                    place.document.key_mark(steps)
                    if named
                    else place.document.value_mark((*steps, key))
                )
                self.problems.append(_copy(error, error.message, error.hint, place.path, mark))
            else:
                rules.append(rule)
        self.problems += _renames(place, declarations)
        return tuple(rules)

    def checks(
        self, place: _Place, declaration: TableDeclaration
    ) -> tuple[tuple[BatchCheck, ...], tuple[TableCheck, ...]]:
        """The checks of one document that are sound, in its order: of batches, of the table."""
        batch: list[BatchCheck] = []
        checks: list[TableCheck] = []
        both: dict[Steps, BatchCheckDeclaration | CheckDeclaration] = {
            **{("batch", name): one for name, one in declaration.batch.items()},
            **{("checks", name): one for name, one in declaration.checks.items()},
        }
        for steps, declared in both.items():
            name, origin = str(steps[1]), place.origin(steps)

            def name_table(more: Steps, text: str, steps: Steps = steps) -> TableName:
                return self.named_table(place, (*steps, *more), text)

            try:
                check_name(name, table=place.table)
            except DeclarationError as error:
                mark = place.document.key_mark(steps)
                self.problems.append(_copy(error, error.message, error.hint, place.path, mark))
                continue
            try:
                if isinstance(declared, CheckDeclaration):
                    checks.append(
                        table_check_of(name, declared, name_table=name_table, origin=origin)
                    )
                else:
                    batch.append(
                        batch_check_of(name, declared, name_table=name_table, origin=origin)
                    )
            except DeclarationError as error:
                self.problems.append(error)
        return tuple(batch), tuple(checks)

    def fit(self, place: _Place, rules: TableRules) -> None:
        """Complain about checks that do not fit the table's rules, or each other."""
        taken = {rule.key: f"a rule ({_where(rule)})" for rule in rules.rules}
        known = [rule.name for rule in rules.rules]
        for section, checks in (("batch", rules.batch), ("checks", rules.checks)):
            for check in checks:
                steps: Steps = (section, check.name)
                key = check.name.lower()
                if key in taken:
                    self.problems.append(
                        place.problem(
                            steps,
                            f"{taken[key]} has this name",
                            "Rename one of the two: what passed and failed is told by name.",
                            at_key=True,
                        )
                    )
                taken[key] = f"a check ({_where(check)})"
                rule = _rule_read_by(check)
                if rule is not None and rules.rule(rule) is None:
                    self.problems.append(
                        place.problem(
                            (*steps, check.kind),
                            f"no rule {rule!r}",
                            did_you_mean(rule, known) if known else "The table has no rules.",
                        )
                    )

    def table(self, pending: _Pending) -> None:
        """Put a table's rules together."""
        place, declaration = pending.place, pending.declaration
        own = self.rules(place, declaration.rules)
        batch, checks = self.checks(place, declaration)
        first = self.tables.get(pending.name)
        if first is not None and first.origin is not None:
            self.problems.append(
                place.problem(
                    ("table",),
                    f"{first.origin.path}, line {first.origin.line}, declares the same table",
                    "Put all rules of a table into one document.",
                )
            )
            return
        shared = tuple(self.used(place, declaration.use))
        taken = {rule.key: rule for rule in shared}
        for rule in own:
            if rule.key in taken:
                self.problems.append(
                    place.problem(
                        ("rules", rule.name),
                        f"the rule set has a rule of this name ({_where(taken[rule.key])})",
                        "Rename one of the two; they compare without regard to case.",
                        at_key=True,
                    )
                )
        rules = TableRules(
            table=pending.name,
            rules=(*shared, *(rule for rule in own if rule.key not in taken)),
            description=declaration.description,
            gate=declaration.gate,
            tags=declaration.tags,
            owner=declaration.owner,
            renamed_from=pending.renamed_from,
            batch=batch,
            checks=checks,
            origin=place.origin(("table",)),
        )
        self.fit(place, rules)
        self.tables[pending.name] = rules

    def used(self, place: _Place, names: Iterable[str]) -> Iterator[Rule]:
        """The rules of the rule sets that a table uses."""
        taken: dict[str, Rule] = {}
        for index, name in enumerate(names):
            steps: Steps = ("use", index)
            found = self.sets.get(name.casefold())
            if found is None:
                if name.casefold() not in self.unsound:
                    known = sorted(one.name for one in self.sets.values())
                    hint = (
                        did_you_mean(name, known)
                        if known
                        else "A rule set is a file without `table:`, named by its stem."
                    )
                    self.problems.append(place.problem(steps, f"no rule set {name!r}", hint))
                continue
            for rule in found.rules:
                if rule.key in taken:
                    self.problems.append(
                        place.problem(
                            steps,
                            f"the rule {rule.name!r} of this rule set was taken in before "
                            f"({_where(taken[rule.key])})",
                            "Rename one of the two, or use one of the sets.",
                        )
                    )
                else:
                    taken[rule.key] = rule
                    yield rule

    def renamed_tables(self) -> None:
        """A table that was renamed is not declared under its old name."""
        for pending in self.pending:
            if pending.renamed_from in self.tables:
                self.problems.append(
                    pending.place.problem(
                        ("renamed_from",),
                        f"{pending.renamed_from} is still declared",
                        "Delete `renamed_from`, or what is declared under the old name.",
                    )
                )


def _in_rule_set(complaint: Complaint) -> Complaint:
    key = complaint.steps[-1]
    if not complaint.at_key or len(complaint.steps) != 1:
        return complaint
    if key == "use":
        return Complaint(
            complaint.steps, True, "a rule set may not use others", "Use both in the table's file."
        )
    hint = did_you_mean(str(key), TableDeclaration.model_fields)
    if key in TableDeclaration.model_fields and key != "rules":
        hint = "A file without `table:` is a rule set, which has rules only: add `table:`."
        return Complaint(complaint.steps, True, f"the key {key!r} belongs to a table", hint)
    return Complaint(complaint.steps, True, complaint.message, hint)


def _renames(place: _Place, declarations: Mapping[str, RuleDeclaration]) -> Iterator[RuleFileError]:
    names = {name.casefold() for name in declarations}
    for name, declaration in declarations.items():
        if declaration.renamed_from.casefold() in names:
            yield place.problem(
                ("rules", name, "renamed_from"),
                f"renamed_from: {declaration.renamed_from!r} is still declared",
                "Delete `renamed_from`, or the rule of the old name.",
            )


def _rule_read_by(check: BatchCheck | TableCheck) -> str | None:
    """The rule whose violators a check counts."""
    test = check.test
    if isinstance(test, BrokenShare):
        return test.rule
    if isinstance(test, Trend) and test.measure.kind is MeasureKind.FAILURE_SHARE:
        return test.measure.of
    return None


def _where(rule: Rule | BatchCheck | TableCheck) -> str:
    return f"{rule.origin.path}, line {rule.origin.line}" if rule.origin else "from Python"
