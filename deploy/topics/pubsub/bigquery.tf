# The table of the rows of all panes, and the view of those that hold.

locals {
  bigquery = "${path.module}/../../bigquery"
  # The view's query alone. A project may have hyphens, so that its name is quoted.
  estimates = replace(
    regex("(?s)\nSELECT.*[^;\\s]", file("${local.bigquery}/estimates.sql")),
    "uldp.estimate_panes",
    "`${var.project}.uldp.estimate_panes`",
  )
}

resource "google_bigquery_dataset" "uldp" {
  dataset_id = "uldp"
  location   = var.region
}

resource "google_bigquery_table" "estimate_panes" {
  dataset_id = google_bigquery_dataset.uldp.dataset_id
  table_id   = "estimate_panes"
  schema     = file("${local.bigquery}/estimate_panes.json")
  clustering = ["collection", "estimator"]

  time_partitioning {
    type  = "DAY"
    field = "window_start"
  }
}

resource "google_bigquery_table" "estimates" {
  dataset_id = google_bigquery_dataset.uldp.dataset_id
  table_id   = "estimates"

  view {
    query          = local.estimates
    use_legacy_sql = false
  }

  # The view's query names the table, which must be there first.
  depends_on = [google_bigquery_table.estimate_panes]
}

# To append rows, and to ask for the table.
resource "google_bigquery_table_iam_member" "job" {
  dataset_id = google_bigquery_dataset.uldp.dataset_id
  table_id   = google_bigquery_table.estimate_panes.table_id
  role       = "roles/bigquery.dataEditor"
  member     = local.job
}
