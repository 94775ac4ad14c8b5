"""YAML's own complaints in words that tell a planner what to do."""

from __future__ import annotations

import yaml

_TEXTS = (
    (
        "mapping values are not allowed",
        "a second colon in one line: put the text in quotes, or begin a new line for the next key",
    ),
    ("found unexpected end of stream", "a quote is opened in this text and never closed"),
    ("expected ',' or ']'", "a comma or the closing ] of the list is missing before this"),
    ("expected ',' or '}'", "a comma or the closing } of the mapping is missing before this"),
    ("could not find expected ':'", "a key without its colon: write key: value"),
    (
        "did not find expected key",
        "no key is possible here: a quote above is not closed, or this is not in line with a key",
    ),
    ("block collections are not allowed", "a block can't begin in the middle of a line"),
    ("block sequence entries are not allowed", "a list can't begin in the middle of a line"),
    (
        "did not find expected '-' indicator",
        "this is in line with the - of a list item: give it one - too, or indent it further",
    ),
    (
        "found unknown escape character",
        r"an unknown escape in double quotes: use single quotes, or \\ for a backslash",
    ),
    ("did not find expected node content", "a value is missing here"),
    (
        "found character that cannot start any token",
        "a text that begins with CHAR must be in quotes",
    ),
    (
        "did not find expected <document start>",
        "this is indented less than the first line, or stands behind the end of the document",
    ),
)


def reworded(error: yaml.MarkedYAMLError, text: str) -> str:
    """What a syntax error means for whoever wrote `text`; YAML's own words if none fit better."""
    problem, mark = error.problem or "", error.problem_mark
    line = text.splitlines()[mark.line] if mark and mark.line < text.count("\n") + 1 else ""
    char = line[mark.column : mark.column + 1] if mark else ""
    if char == "\t" or "'\\t'" in problem:
        return "a tab is not allowed here: indent by spaces"
    for key, says in _TEXTS:
        if key in problem:
            return f"not valid YAML: {says.replace('CHAR', char)}"
    return f"not valid YAML: {problem}"
