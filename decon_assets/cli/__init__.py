"""`decon-assets`: one file per command."""

import os

# Pydantic would look for plugins in every installed package: 30 ms at each start.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
