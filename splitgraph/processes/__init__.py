"""Worker processes, and what a process that is killed leaves behind: its children, temporary folders and locks."""
