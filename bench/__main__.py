"""`python -m bench`: the measurements behind docs/benchmarks*.md."""

import argparse
import sys
from collections.abc import Sequence

from bench.command import DESCRIPTION, EPILOG, add_arguments, bench
from decon_assets.cli.main import exit_code_of
from decon_assets.terminal.output import say


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments ask for, and print a page of Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return exit_code_of(lambda: bench(parser.parse_args(arguments), say))


if __name__ == "__main__":
    sys.exit(main())
