"""The report: one page of HTML from the tables. `reading` finds it, `page` writes it, both without Spark."""
