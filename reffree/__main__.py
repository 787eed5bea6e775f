"""Run ``python -m reffree``, and the command ``reffree``."""

import os
import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while modules are read: nothing has begun; the command then listens for itself.
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))

from reffree.cli import main

if __name__ == "__main__":
    main()
