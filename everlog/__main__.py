"""Run the command line as `python -m everlog`."""

import sys

from everlog.cli import main

sys.exit(main())
