"""What an operator does with groups, free of presentation."""
