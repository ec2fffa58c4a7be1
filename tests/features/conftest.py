"""The worlds of features: those of the core and of its assets."""

from tests.assets.conftest import at_home, at_home_on_disk, reported
from tests.core.conftest import bench, make_words

__all__ = ["at_home", "at_home_on_disk", "bench", "make_words", "reported"]
