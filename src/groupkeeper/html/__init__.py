"""The HTML kit of the report and of the pages of `groupkeeper serve`: markup, plots and their look.

It knows neither tables of the pipeline nor snapshots. Whole pages are in `pipeline.report` and `web.pages`.
"""
