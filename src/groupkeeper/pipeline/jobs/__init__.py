"""What a command runs: reads, transforms, writes tables."""
