"""Where decon.toml is, for commands that only name it: importing this module is fast."""

CONFIG_VARIABLE = "DECON_CONFIG"  # environment variable with the path, for Dagster's processes
DEFAULT_CONFIG = "decon.toml"
