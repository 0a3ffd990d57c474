"""The report of a run: one self-contained HTML file; needs the extra ``report``.

:func:`report_data` and, for a whole path of k, :func:`path_report_data` gather everything that the
page shows as plain JSON. :func:`render_report`
makes the page from it, now or later, without the samples.
"""

from evomeans.report.data import report_data
from evomeans.report.page import render_report
from evomeans.report.path_data import path_report_data

__all__ = ["path_report_data", "render_report", "report_data"]
