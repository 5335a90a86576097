#!/bin/sh
# Stops a job on Flink with a savepoint, and prints where that is. With a command, submits the job again from there:
#
#   deploy/flink/stop.sh HOST:PORT JOB [uldp stream --specs FOLDER ...]
#
# HOST:PORT is Flink's REST interface, and JOB the id of the job. If the command fails, the job does not run: mend what
# it names, and give the command again with --savepoint_path and what was printed.
set -eu

flink=$1 job=$2
shift 2

field() {
  grep -o "\"$1\":\"[^\"]*\"" | head -1 | cut -d '"' -f 4
}

answer=$(curl -sS -H 'Content-Type: application/json' -d '{"drain": false}' "$flink/jobs/$job/stop")
id=$(echo "$answer" | field request-id)
: "${id:?Flink did not take the request; check HOST:PORT and JOB: $answer}"
until state=$(curl -sS "$flink/jobs/$job/savepoints/$id") && echo "$state" | grep -q '"COMPLETED"'; do
  sleep 1
done
case $state in
  *'"failure-cause"'*)
    echo "error: the job goes on, because Flink made no savepoint; try again after its next checkpoint: $state" >&2
    exit 1
    ;;
esac
savepoint=$(echo "$state" | field location)
echo "$savepoint"
if [ $# -gt 0 ]; then
  exec "$@" "--savepoint_path=$savepoint"
fi
