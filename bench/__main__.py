"""`python -m bench`: the measurements behind docs/benchmarks*.md."""

import argparse
import sys
from collections.abc import Sequence

from bench.command import COMMAND
from decon_assets.cli.main import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments ask for, and print a page of Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=COMMAND.description,
        epilog=COMMAND.epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for add in COMMAND.arguments:
        add(parser)
    parser.set_defaults(command=COMMAND.run)
    return run(parser, sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
