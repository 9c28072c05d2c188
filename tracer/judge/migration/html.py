"""The verdict as one HTML file: no script, nothing loaded, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tracer.judge.migration import phrases
from tracer.judge.migration.chart import Limit, chart
from tracer.judge.migration.figures import FIGURES, Subject
from tracer.judge.migration.text import (
    CAUSE_TITLES,
    FINDING_TITLES,
    cause_cells,
    finding_cells,
    shown_causes,
)
from tracer.judge.migration.verdict import Verdict
from tracer.judge.words import duration

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76em; margin: 2em auto; padding: 0 1em;
       color: #1a1a1a; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
td, th { border-bottom: 1px solid #ddd; padding: .3em .7em; text-align: left;
         vertical-align: top; font-variant-numeric: tabular-nums }
h1 { border-left: .4em solid; padding-left: .5em }
.pass { color: #0a7d33 } .fail { color: #b3261e } .inconclusive { color: #8a5a00 }
td:first-child { font-weight: 600 }
td:first-child.cause { font-weight: 400; padding-left: 2em }
text { paint-order: stroke; stroke: #fff; stroke-width: 3px }
svg { margin: 1em 1em 0 0; font: 12px system-ui, sans-serif }
"""


def as_html(verdict: Verdict) -> str:
    return "\n".join(_page(verdict)) + "\n"


def _page(verdict: Verdict) -> Iterator[str]:
    title = phrases.headline(verdict)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield """<meta http-equiv="Content-Security-Policy" """
    yield """content="default-src 'none'; style-src 'unsafe-inline'">"""
    yield f"<title>Migration: {escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    yield f'<h1 class="{verdict.outcome}">{escape(title)}</h1>'
    yield f"<p>Before: {escape(phrases.recording(verdict.before))}<br>"
    yield f"After: {escape(phrases.recording(verdict.after))}</p>"
    if verdict.objections:
        yield "<h2>What speaks against a comparison</h2>\n<ul>"
        yield from (f"<li>{escape(objection.text)}</li>" for objection in verdict.objections)
        yield "</ul>"
    yield "<h2>Criteria</h2>"
    rows = [finding_cells(finding) for finding in verdict.findings]
    yield from _table(FINDING_TITLES, rows, [finding.outcome for finding in verdict.findings])
    yield from (f"<p>{escape(note)}</p>" for note in phrases.notes(verdict))
    yield "<h2>Distributions</h2>"
    yield "<p>The part of all that took longer than a time. Lower and further left is better; "
    yield "after the migration a curve must pass limits on their left.</p>"
    yield from _charts(verdict)
    if verdict.causes:
        shown = shown_causes(verdict)
        yield "<h2>Where the time of a step went</h2>"
        kinds = ["part" if cause.is_part else "cause" for cause in shown]
        yield from _table(CAUSE_TITLES, [cause_cells(cause) for cause in shown], kinds)
    yield "</body>\n</html>"


def _charts(verdict: Verdict) -> Iterator[str]:
    """Step times and deschedules of all that was judged."""
    pairs = dict.fromkeys((finding.tenant, finding.step) for finding in verdict.findings)
    before, after = verdict.before, verdict.after
    for pair in pairs:
        if pair in before.elapsed and pair in after.elapsed:
            title, limits = f"Step wall time: {' '.join(pair)}", _limits(verdict, "step", pair)
            yield chart(title, before.elapsed[pair], after.elapsed[pair], limits)
    for tenant, step in pairs:
        if not step and tenant in before.deschedules and tenant in after.deschedules:
            title = f"Deschedule intervals: {tenant}"
            limits = _limits(verdict, "deschedule", (tenant, ""))
            yield chart(title, before.deschedules[tenant], after.deschedules[tenant], limits)


def _limits(verdict: Verdict, what: str, subject: Subject) -> list[Limit]:
    """Of quantiles after the migration."""
    found = []
    for finding in verdict.findings:
        of, _, which = finding.criterion.figure.rpartition("_")
        quantile, most = FIGURES[finding.criterion.figure].quantile, finding.criterion.at_most
        if (of, finding.tenant, finding.step) == (what, *subject) and quantile and most:
            found.append(Limit(most, 1 - quantile, f"{which} at most {duration(most)}"))
    return found


def _table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str]
) -> Iterator[str]:
    yield f"<table>\n<tr>{''.join(f'<th>{escape(title)}</th>' for title in titles)}</tr>"
    for row, kind in zip(rows, classes, strict=True):
        first, *others = (escape(cell) for cell in row)
        rest = "".join(f"<td>{cell}</td>" for cell in others)
        yield f'<tr><td class="{kind}">{first}</td>{rest}</tr>'
    yield "</table>"
