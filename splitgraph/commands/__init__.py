"""The commands: each module calls the API, writes the result, prints the report and returns an exit code."""
