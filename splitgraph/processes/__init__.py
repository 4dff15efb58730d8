"""Worker processes, and the care for what a killed process leaves behind: its children, temporary folders and locks."""
