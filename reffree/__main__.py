"""Run ``python -m reffree``."""

from reffree.cli import main

if __name__ == "__main__":
    main()
