"""What programs import as `groupkeeper`: the form that blocks, lag, tables."""
