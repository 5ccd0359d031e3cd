"""The report: one page of HTML of what the tables say. `reading` finds it, `page` writes it, both without Spark."""
