"""The ``cwnd`` command."""

from __future__ import annotations

import gc
import sys

from cwnd._base import interrupts, machine


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        interrupts.install()
        machine.write_utf8()
        from cwnd._cli import run

        status = run(sys.argv[1:])
    except BaseException:
        if not interrupts.received():
            raise
        status = interrupts.report()
    # The interpreter would traverse the objects of all imported libraries several times.
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
