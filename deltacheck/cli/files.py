"""The commands that make and look at a project's files: they start no JVM."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.text import Text

from deltacheck.cli.documents import NewRevisionDocument
from deltacheck.cli.options import AsJson, Owners, ProjectFolder, Quiet, Tags
from deltacheck.cli.output import out, print_json
from deltacheck.cli.revisions import operation_document, print_operations
from deltacheck.migrate import project as files
from deltacheck.migrate.project import NewRevision, Template


class Format(str, Enum):
    """How findings are printed."""

    TEXT = "text"
    GITHUB = "github"
    JSON = "json"


Folder = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The project's new folder.")]
From = Annotated[Template, typer.Option("--template", help="Where the tables are.")]
Message = Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="What it is for.")]
NoMessage = Annotated[
    str, typer.Option("--message", "-m", metavar="TEXT", help="What it is for; default: the ids.")
]
Autogenerate = Annotated[
    bool,
    typer.Option(
        "--autogenerate", help="Fill it with what constraints/ says beyond the migrations."
    ),
]
Id = Annotated[
    Optional[str],  # noqa: UP045  (typer reads annotations at run time on Python 3.10)
    typer.Option("--id", metavar="ID", help="Its id; default: the next number."),
]
As = Annotated[
    Format, typer.Option("--format", help="text; json; github: annotations of a pull request.")
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("init")(init)
    app.command("revision")(revision)
    app.command("merge")(merge)
    app.command("lint")(lint)


def init(folder: Folder = Path(), template: From = Template.LOCAL, as_json: AsJson = False) -> None:
    """Begin a project: deltacheck.toml, constraints/ and versions/.

    Never overwrites a file.
    """
    made = files.init_project(folder, template)
    if as_json:
        paths = [path.as_posix() for path in made]
        print_json({"folder": str(folder), "template": template.value, "files": paths})
        return
    for path in made:
        out().print(Text(f"made {path}"))
    out().print(
        "Next: write rules in constraints/, then "
        '`deltacheck revision --autogenerate -m "what they say"`.'
    )


def revision(
    message: Message,
    autogenerate: Autogenerate = False,
    revision_id: Id = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a new migration in versions/.

    With --autogenerate it holds the difference between constraints/ and what the migrations
    add up to. Where there is none, no file is made.
    """
    made = files.new_revision(project, message, autogenerate=autogenerate, revision=revision_id)
    _print_new(made, as_json=as_json, quiet=quiet)


def merge(
    message: NoMessage = "",
    revision_id: Id = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a migration that joins two heads."""
    made = files.merge_heads(project, message, revision=revision_id)
    _print_new(made, as_json=as_json, quiet=quiet)


def _print_new(made: NewRevision, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(_new_document(made))
    elif made.path is None:
        out().print("Nothing to do: the migrations add up to what constraints/ says.")
    else:
        out().print(Text(f"made {made.path}"))
        if not quiet:
            print_operations(made.operations)


def _new_document(made: NewRevision) -> NewRevisionDocument:
    return {
        "file": None if made.path is None else made.path.as_posix(),
        "revision": made.revision,
        "down_revision": list(made.down_revision),
        "operations": [operation_document(operation) for operation in made.operations],
    }


def lint(
    output: As = Format.TEXT,
    tags: Tags = None,
    owners: Owners = None,
    project: ProjectFolder = Path(),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Check rules and migrations without Spark; exit with 1 where a finding is an error.

    docs/lint.md lists what is found. A comment `# deltacheck: ignore[CODE]` silences a finding.
    """
    from deltacheck.lint import as_github, as_text, failed, summary
    from deltacheck.lint import as_json as json_document

    found = files.lint(project, tags=tags or (), owners=owners or ())
    root = Path.cwd()
    if as_json or output is Format.JSON:
        print_json(json_document(found, root=root))
    elif output is Format.GITHUB:
        for line in as_github(found, root=root):
            typer.echo(line)
    else:
        for line in as_text(found, root=root):
            out().print(Text(line), soft_wrap=True)
        if not quiet:
            out().print(summary(found), style="dim")
    return 1 if failed(found) else 0
