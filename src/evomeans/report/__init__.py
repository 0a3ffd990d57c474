"""The report of a run: one self-contained HTML file; needs the extra ``report``.

:func:`report_data` gathers everything that the page of a fit, or of a whole path of k, shows as
plain JSON. :func:`render_report` makes the page from it, now or later, without the samples.
:func:`write_report` does both.
"""

from evomeans.report.data import report_data
from evomeans.report.page import render_report, write_report

__all__ = ["render_report", "report_data", "write_report"]
