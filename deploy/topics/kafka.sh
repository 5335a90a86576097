#!/bin/sh
# Creates the topics of a Kafka cluster that are not there yet, with the tools that Kafka brings:
#
#   BOOTSTRAP=HOST:PORT deploy/topics/kafka.sh
#
# A topic that is there stays as it is. Replicas are as many as the brokers make by default.
set -eu

topic() {
  name=$1 partitions=$2
  shift 2
  kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --create --if-not-exists \
    --topic "$name" --partitions "$partitions" "$@"
}

# The broker's clock says what is late. For a week, a job may be away, and reports can be read again.
topic reports 4 --config message.timestamp.type=LogAppendTime --config retention.ms=604800000

# A row has one key in all panes of its window, so that the newest is what stays.
topic estimates 1 --config cleanup.policy=compact

# For a month, to look at why, and to send again what was mended.
topic rejected 1 --config retention.ms=2678400000
