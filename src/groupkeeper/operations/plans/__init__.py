"""Plans: what becomes of committed offsets. Made, checked, applied, journalled, undone (docs/plans.md)."""
