"""The work of a command on one model, from file to file. Nothing is printed here: `commands` prints the results, and
`many` collects them.
"""
