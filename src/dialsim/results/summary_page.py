"""The summary as HTML, for notebooks: the answer in words, then the figures as tables."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from dialsim.results.summary_text import FigureTable, answers, headline, tables

if TYPE_CHECKING:
    from dialsim.results.summary import Summary


def summary_html(summary: Summary) -> str:
    """A fragment of HTML without scripts or links."""
    said = "".join(
        f"<p><b>{escape(answer.campaign)}</b>: {escape(answer.finish)}. {escape(answer.reach)}."
        f"<br>{escape(answer.held_back)}</p>"
        for answer in answers(summary)
    )
    figures = "".join(table_html(table) for table in tables(summary))
    remarks = [*summary.warnings, *(f"{part.action}: {part.message}" for part in summary.refused)]
    notes = "".join(f"<li>{escape(remark)}</li>" for remark in remarks)
    return (
        f"<div><h3>{escape(summary.scenario)}</h3><p>{escape(headline(summary))}</p>{said}{figures}"
        + (f"<ul>{notes}</ul>" if notes else "")
        + "</div>"
    )


def table_html(table: FigureTable) -> str:
    """A table of texts as HTML."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in (table.title, *table.columns))
    rows = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, *cells in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
