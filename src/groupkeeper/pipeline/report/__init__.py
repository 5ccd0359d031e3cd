"""The report: one page of HTML. `reading` sums up the tables with Arrow, `page` renders the result; neither needs
Spark.

Tables are made in `jobs`. The pages of `groupkeeper serve` are in `groupkeeper.web.pages`; what both are
made of is in `groupkeeper.html`.
"""
