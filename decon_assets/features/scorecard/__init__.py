"""The command of the scorecard."""
