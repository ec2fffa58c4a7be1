-- Rows of the tables on the report's page. "95 % interval" has both ends, and the text shown if there are none.

-- name: differences
-- Averages first.
SELECT training_run AS "training run", benchmark,
       concat_ws(', ', nullif(metric, ''), nullif(filter, '')) AS metric,
       score, baseline, difference, row(low, high, '') AS "95 % interval", p,
       concat_ws('; ', nullif(basis, ''), nullif(remark, '')) AS "compared on"
FROM differences WHERE difference IS NOT NULL
ORDER BY n_benchmarks IS NULL, rowid

-- name: changes
-- Averages first.
SELECT training_run AS "training run", benchmark,
       concat_ws(', ', nullif(metric, ''), nullif(filter, '')) AS metric, change,
       step, other_step AS "other step", at_step AS "at the first", at_other_step AS "at the second",
       difference,
       row(low, high, remark) AS "95 % interval", p
FROM changes
ORDER BY n IS NOT NULL, rowid

-- name: by_dose
-- Averages first.
SELECT series, dose, n_training_runs AS "training runs", benchmark,
       concat_ws(', ', nullif(metric, ''), nullif(filter, '')) AS metric,
       score, baseline, difference, row(low, high, remark) AS "95 % interval", p
FROM by_dose WHERE difference IS NOT NULL
ORDER BY n_benchmarks IS NULL, rowid

-- name: effects
-- Those of all benchmarks first.
SELECT training_run AS "training run", benchmark,
       concat_ws(', ', nullif(metric, ''), nullif(filter, '')) AS metric, exposure,
       concat_ws(', ', nullif(form, ''), nullif(copies, ''), nullif("when", '')) AS "planted as",
       n AS items, score, baseline, difference, row(low, high, remark) AS "95 % interval", p
FROM effects
ORDER BY training_run, benchmark <> 'all benchmarks', rowid
