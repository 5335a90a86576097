# What a job needs in Google Cloud: topics, subscriptions, a folder, a table, and an account that may use them.

terraform {
  required_version = ">= 1.5"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 6.50"
    }
  }
}

variable "project" {
  type        = string
  description = "Whose all of it is."
}

variable "region" {
  type        = string
  description = "Where data are kept, for example europe-west4."
}

variable "bucket" {
  type        = string
  description = "The name of the bucket to create, for results, checkpoints and what Dataflow stages."
}

provider "google" {
  project = var.project
  region  = var.region
}

# Messages are framed by their schema, which Pub/Sub does not know: topics have none.
resource "google_pubsub_topic" "topic" {
  for_each = toset(["reports", "estimates", "rejected", "dead-letters"])
  name     = each.key

  message_storage_policy {
    allowed_persistence_regions = [var.region]
  }
}

# A job of one runner reads it. Copies do not matter, for reports are counted once.
resource "google_pubsub_subscription" "reports" {
  name  = "reports"
  topic = google_pubsub_topic.topic["reports"].id

  # A job extends what it has; what a lost worker had comes again so soon.
  ack_deadline_seconds = 60
  # For a week, a job may be away, and what was acknowledged can be read again by one that starts anew.
  message_retention_duration = "604800s"
  retain_acked_messages      = true

  expiration_policy {
    ttl = "" # never
  }

  # The job rejects by itself what it cannot count. This is for what makes each worker that takes it fail, so as late as
  # can be: every restart of a job is a delivery of all it had. Dataflow does not heed it.
  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.topic["dead-letters"].id
    max_delivery_attempts = 100
  }

  # Pub/Sub looks at this when it is created.
  depends_on = [google_pubsub_topic_iam_member.forwards]
}

# A topic without a subscription keeps nothing. For 31 days, the most that there is.
resource "google_pubsub_subscription" "kept" {
  for_each                   = toset(["estimates", "rejected", "dead-letters"])
  name                       = each.key
  topic                      = google_pubsub_topic.topic[each.key].id
  message_retention_duration = "2678400s"

  expiration_policy {
    ttl = ""
  }
}

# Pub/Sub itself forwards dead letters: it publishes them there, and acknowledges them here.
data "google_project" "own" {
  project_id = var.project
}

locals {
  forwarder = "serviceAccount:service-${data.google_project.own.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
  job       = google_service_account.job.member
}

resource "google_pubsub_topic_iam_member" "forwards" {
  topic  = google_pubsub_topic.topic["dead-letters"].id
  role   = "roles/pubsub.publisher"
  member = local.forwarder
}

resource "google_pubsub_subscription_iam_member" "forwards" {
  subscription = google_pubsub_subscription.reports.id
  role         = "roles/pubsub.subscriber"
  member       = local.forwarder
}

# Whom a job runs as.
resource "google_service_account" "job" {
  account_id   = "uldp-stream"
  display_name = "Jobs of uldp-stream"
}

resource "google_pubsub_subscription_iam_member" "job" {
  for_each     = toset(["roles/pubsub.viewer", "roles/pubsub.subscriber"])
  subscription = google_pubsub_subscription.reports.id
  role         = each.key
  member       = local.job
}

resource "google_pubsub_topic_iam_member" "publishes" {
  for_each = toset(["estimates", "rejected"])
  topic    = google_pubsub_topic.topic[each.key].id
  role     = "roles/pubsub.publisher"
  member   = local.job
}

# A job looks whether the topics are there that it publishes to, and Dataflow how much of the reports is waiting.
resource "google_pubsub_topic_iam_member" "looks" {
  for_each = toset(["reports", "estimates", "rejected"])
  topic    = google_pubsub_topic.topic[each.key].id
  role     = "roles/pubsub.viewer"
  member   = local.job
}

resource "google_project_iam_member" "worker" {
  project = var.project
  role    = "roles/dataflow.worker"
  member  = local.job
}

resource "google_storage_bucket" "results" {
  name                        = var.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  # Late and rejected reports hold whatever clients have sent, and counts of few reports are almost these reports. These
  # are their folders if a job writes to gs://BUCKET/results, or with --private-to=gs://BUCKET/private.
  lifecycle_rule {
    condition {
      age = 30 # days
      matches_prefix = [
        "results/late/", "results/rejected/", "results/few/", "private/late/", "private/rejected/", "private/few/"
      ]
    }
    action {
      type = "Delete"
    }
  }
}

resource "google_storage_bucket_iam_member" "job" {
  bucket = google_storage_bucket.results.name
  role   = "roles/storage.objectAdmin"
  member = local.job
}
