"""`python -m misstep` is `misstep`."""

import sys

from misstep.cli import main

if __name__ == "__main__":
    sys.exit(main())
