"""Parser, output, tables, contexts and files that all commands share. One command's options belong to its room."""
