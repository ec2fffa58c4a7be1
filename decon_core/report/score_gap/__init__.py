"""What models scored on the items that leaked, and on the others.

The way of a result: `find` (which files hold results, and in which format), `harness`, `olmes`,
`lighteval` and `plain` (one reader for each format), `tasks` (which benchmark a task is), `items`
(the report's items, found again by their texts), `join` (results to items), `account` (scores by
verdict), `gaps` (interval and chance of a gap), `page` (the tables).
"""
