"""`python cli.py` from a checkout: the same program as the command `splitgraph`."""

import sys

from splitgraph.cli import main

if __name__ == "__main__":
    sys.exit(main())
