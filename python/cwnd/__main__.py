"""The ``cwnd`` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        from cwnd.cli import run
    except KeyboardInterrupt:
        sys.stderr.write("cwnd: interrupted\n")
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
