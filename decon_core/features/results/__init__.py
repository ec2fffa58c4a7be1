"""Per-item results of models, joined to the items of a report.

In order of use: `find` (result files and their format), `harness`, `olmes`, `lighteval`,
`inspect_logs` and `plain` (one reader per format), `per_item` (what they all return), `tasks` (task
name to benchmark), `items` (the report's items, looked up by text), `join` (results to items).
"""

from decon_core.feature import Feature

FEATURE = Feature(name="results")
