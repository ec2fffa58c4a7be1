"""Compare the scores of models on leaked and on clean items.

In order of use: `find` (find result files and their format), `harness`, `olmes`, `lighteval` and
`plain` (one reader per format), `tasks` (task name to benchmark), `items` (the report's items,
looked up by text), `join` (results to items), `account` (scores by verdict), `gaps` (interval and
p-value), `page` (tables and files).
"""
