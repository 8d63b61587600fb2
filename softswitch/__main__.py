"""``python -m softswitch`` is the command ``softswitch``."""

from softswitch.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
