"""The report of a run: one HTML file that needs nothing else; it is made with jinja2.

:func:`report_data` gathers all that the page tells, as plain JSON; :func:`render_report` makes the
page of it, now or later, without the samples.
"""

from evomeans.report.data import report_data
from evomeans.report.page import render_report

__all__ = ["render_report", "report_data"]
