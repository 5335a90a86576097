-- What is known now: the newest pane of each estimate, once. The table keeps every pane, and a row that was sent twice.
--
--   bq mk --dataset PROJECT:uldp
--   bq mk --table --schema=estimate_panes.json --time_partitioning_field=window_start \
--     --clustering_fields=collection,key PROJECT:uldp.estimate_panes
--   bq query --project_id=PROJECT --use_legacy_sql=false < estimates.sql
CREATE VIEW IF NOT EXISTS uldp.estimates AS
SELECT
  key,
  age,
  collection,
  version,
  window_start,
  window_end,
  pane,
  mechanism,
  epsilon,
  estimator,
  n,
  distribution,
  stderr,
  tags,
  bound,
  counts,
  accounting,
  flags,
  supersedes,
  signals
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY age DESC) AS place FROM uldp.estimate_panes
)
WHERE place = 1;
