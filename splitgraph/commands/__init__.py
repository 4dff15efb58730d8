"""What the commands do: call the API, write the result, print the report. Each is a module and returns an exit code."""
