"""What collectors found, over HTTP: metrics, and how the program itself is."""
