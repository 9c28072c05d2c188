"""``python -m tracer.cli``, where no script is installed."""

import sys

from tracer.cli import main

sys.exit(main())
