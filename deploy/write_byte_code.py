"""Import what commands import and open a history, so that Python writes the byte code of it all.

Commands that are started with PYTHONDONTWRITEBYTECODE would otherwise compile some 300 modules of
Dagster and SQLAlchemy each time: 0.7 s.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import decon_assets.definitions
import decon_assets.runner.pipeline  # noqa: F401 # imported for its byte code, like the line above
from decon_assets.instance.home import open_instance

if __name__ == "__main__":
    with TemporaryDirectory() as home, open_instance(Path(home)):
        pass
