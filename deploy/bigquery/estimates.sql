-- What is known now: the newest pane of each estimate, once. The table keeps every pane, and a row that was sent twice.
--
--   bq mk --dataset PROJECT:uldp
--   bq mk --table --schema=estimate_panes.json --time_partitioning_field=window_start \
--     --clustering_fields=collection,key PROJECT:uldp.estimate_panes
--   bq query --project_id=PROJECT --use_legacy_sql=false < estimates.sql
--
-- A row holds its tables as arrays. This is how to get the share of each value, by its index in the domain:
--
--   SELECT collection, window_start, estimator, value, share, t.stderr[OFFSET(value)] AS stderr
--   FROM uldp.estimates, UNNEST(tables) AS t, UNNEST(t.values) AS share WITH OFFSET AS value
--   WHERE t.name = 'share'
CREATE VIEW IF NOT EXISTS uldp.estimates AS
SELECT
  key,
  age,
  collection,
  version,
  channel,
  window_start,
  window_end,
  pane,
  mechanism,
  epsilon,
  lasting_epsilon,
  budget,
  estimator,
  n,
  tables,
  accounting,
  flags,
  supersedes,
  signals
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY age DESC) AS place FROM uldp.estimate_panes
)
WHERE place = 1;
