"""What is installed here and works: packages, engines, folders, memory. `splitgraph doctor` shows it."""
