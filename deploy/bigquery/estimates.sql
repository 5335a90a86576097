-- What is known now: the rows of the newest pane of each window, as `uldp export` writes them. The table keeps the rows
-- of every pane, and a row that was sent twice.
--
--   bq mk --dataset PROJECT:uldp
--   bq mk --table --schema=estimate_panes.json --time_partitioning_field=window_start \
--     --clustering_fields=collection,estimator PROJECT:uldp.estimate_panes
--   bq query --project_id=PROJECT --use_legacy_sql=false < estimates.sql
--
-- This is how to get the share of each value:
--
--   SELECT collection, window_start, label, estimate, low, high FROM uldp.estimates
--   WHERE quantity = 'share' AND pane <> 'early' AND flags IS NULL
--
-- And this is the share of each value over a day. Only unbiased may be averaged, with n as its weight; the mean of
-- estimate is wrong. With tags, take visible_unbiased and visible_stderr. See docs/export.md.
--
--   SELECT collection, version, device_digest, estimator, attribute, slice, label,
--     TIMESTAMP_TRUNC(window_start, DAY) AS day,
--     SUM(n * unbiased) / SUM(n) AS share, SQRT(SUM(POW(n * stderr, 2))) / SUM(n) AS stderr, SUM(n) AS n
--   FROM uldp.estimates
--   WHERE quantity = 'share' AND pane <> 'early' AND flags IS NULL
--   GROUP BY collection, version, device_digest, estimator, attribute, slice, label, day
CREATE VIEW IF NOT EXISTS uldp.estimates AS
SELECT
  collection,
  version,
  device_digest,
  window_start,
  window_end,
  pane,
  revision,
  mechanism,
  epsilon,
  lasting_epsilon,
  budget_epsilon,
  budget_days,
  shuffle_epsilon,
  shuffle_delta,
  estimator,
  assume_forgers,
  quantity,
  attribute,
  slice,
  position,
  label,
  estimate,
  low,
  high,
  low_forged,
  high_forged,
  level,
  basis,
  simultaneous,
  unbiased,
  stderr,
  visible,
  visible_low,
  visible_high,
  visible_unbiased,
  visible_stderr,
  band_low,
  band_high,
  n,
  flags,
  received,
  counted,
  duplicate,
  late,
  rejected,
  missing
FROM (
  SELECT
    *,
    MAX(age) OVER (PARTITION BY collection, version, device_digest, window_start, window_end, estimator) AS newest,
    ROW_NUMBER() OVER (
      PARTITION BY
        collection, version, device_digest, window_start, window_end, estimator, age, table_name, position
      ORDER BY age
    ) AS copy
  FROM uldp.estimate_panes
)
WHERE age = newest AND copy = 1;
