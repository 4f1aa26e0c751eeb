"""What the documentation site has beside its pages: commands, configuration, rooms, and formulas.

mkdocs.yml names it; `make docs` runs it. Nothing it makes is committed, so nothing of it can be out
of date.
"""

import pkgutil
import re
from html import escape, unescape

import griffe
import typer
from latex2mathml.converter import convert
from mkdocs.structure.files import File
from pydantic import BaseModel

import bara
from bara.cli import app
from bara.runs.config import Config
from bara.runs.reference import REGISTRIES, options_of

INSIDE = re.compile(r"_|cli|(faults|files)$")
"""Rooms without a page: the command line has its own; faults and files are for the inside."""

COMMANDS = {"bara --help": "cli", "bara run --show-config": "configuration"}
"""Commands that stand for a reference page, with its name."""

NAMED = re.compile(r"(?<!\[)`(bara\.\w+[\w.]*|" + "|".join(COMMANDS) + r")`(?!\])")
FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
DOCTEST = re.compile(r"^>>> .*?(?=^\s*$|\Z)", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files, config):
    """Add the pages that are made of the code."""
    pages = {
        "cli": command_line(),
        "configuration": configuration(),
        "bara": _room("bara", deep=False),
    }
    pages |= {room: _room(f"bara.{room}") for room in _rooms()}
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown, *, page, **_):
    """Link modules and commands to the pages that only the site has, outside of code blocks."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    parts = FENCED.split(markdown)
    parts[::2] = [NAMED.sub(_reference, part) for part in parts[::2]]
    return "".join(parts)


def _reference(found):
    """A name with a link to its page, or as it is where it has none."""
    name = found[1]
    module = re.match(r"bara\.(\w+)", name)
    if module is None:
        return f"[{found[0]}](reference/{COMMANDS[name]}.md)"
    return f"[{found[0]}](reference/{module[1]}.md)" if module[1] in _rooms() else found[0]


def on_page_content(html, **_):
    """Set formulas as MathML, which browsers draw without a script."""
    return FORMULA.sub(_mathml, html)


def _rooms():
    """The rooms that have a page."""
    return [name for _, name, _ in pkgutil.iter_modules(bara.__path__) if not INSIDE.match(name)]


def command_line():
    """The help of every verb."""
    program = typer.main.get_command(app)
    verbs = _verb("bara", program, typer.Context(program, info_name="bara"))
    return "\n".join(["# Command line", "", *verbs, "## Exit codes", "", *_codes()])


def _codes():
    yield from ("| code | meaning |", "|---|---|", "| 0 | done |")
    yield (
        "| 1 | the work failed; a check found something (`audit`, `verify`); "
        "a run of a comparison failed; a run was paused, or waits for approval |"
    )
    yield (
        "| 2 | wrong usage or configuration (`ConfigError`), an unknown name, "
        "more of a dataset than there is |"
    )
    yield "| 130 | Ctrl-C |"


def _verb(name, command, context):
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from (command.help or "", "", "```text", usage, "```", "")
    records = [
        record for one in command.get_params(context) if (record := one.get_help_record(context))
    ]
    yield from ("| argument or option | what it does |", "|---|---|")
    yield from (
        f"| `{_cell(option)}` | {_cell(escape(text))} |"
        for option, text in records
        if option != "--help"
    )
    yield ""
    if command.epilog:
        yield from (
            "```text",
            *(line.strip() for line in command.epilog.splitlines()[1:] if line.strip()),
            "```",
            "",
        )
    for verb, inner in getattr(command, "commands", {}).items():
        yield from (f"{'#' * len(name.split())}# `{name} {verb}`", "")
        yield from _verb(
            f"{name} {verb}", inner, typer.Context(inner, parent=context, info_name=verb)
        )


def _cell(text):
    return text.replace("|", "\\|")


def configuration():
    """Every key of an experiment, its default and what it is for."""
    lines = ["# Configuration", "", "`bara run --show-config` prints the whole of it as TOML.", ""]
    plain = {name: field for name, field in Config.model_fields.items() if not _section(field)}
    lines += ["## At the top", "", *_table(plain)]
    for name, field in Config.model_fields.items():
        if section := _section(field):
            lines += [
                f"## [{name}]",
                "",
                section.__doc__.splitlines()[0],
                "",
                *_table(section.model_fields),
            ]
            for part in REGISTRIES[name].names() if name in REGISTRIES else ():
                lines += [f"### {name} `{part}`", "", *_options(options_of(name, part))]
    return "\n".join(lines)


def _options(options):
    """What an allocator, a mechanism or an engine can be told."""
    if not options:
        yield from ("It has no options of its own.", "")
        return
    yield from ("| option | default | what it may be | what it is for |", "|---|---|---|---|")
    for one in options:
        default = "" if one.default is None else f"`{one.default}`"
        yield f"| `{one.name}` | {default} | {_cell(one.kind)} | {_cell(escape(one.about))} |"
    yield ""


def _table(fields):
    yield from ("| key | default | what it is for |", "|---|---|---|")
    for name, field in fields.items():
        default = field.get_default(call_default_factory=True)
        shown = "" if default is None else f"`{default}`"
        yield f"| `{name}` | {shown} | {field.description or ''} |"
    yield ""


def _section(field):
    return (
        field.annotation
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        else None
    )


def _room(module, *, deep=True):
    return f"# {module}\n\n::: {module}\n    options:\n      show_submodules: {deep}\n"


def _mathml(found):
    display = "block" if found[1] == "div" else "inline"
    return convert(unescape(found[2]), display=display)


class Readable(griffe.Extension):
    """The rooms as one wants to read them: every public name once, and doctests as code."""

    def on_package(self, *, pkg, **_):
        """Go through the whole package once it is read."""
        for module in pkg.modules.values():
            self._tidy(module)

    def _tidy(self, thing):
        if thing.docstring:
            thing.docstring.value = DOCTEST.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", thing.docstring.value
            )
        for name, member in list(thing.members.items()):
            if member.is_alias:
                inside = member.target_path.removeprefix(f"{thing.path}.")
                if inside != member.target_path and not inside.startswith(
                    "_"
                ):  # it has a page of its own
                    del thing.members[name]
            else:
                self._tidy(member)
