#!/usr/bin/env bash
# Pin the Dockerfile's bases by the digests that their registries give, in place of those that are there:
# deploy/image/pin.sh [DOCKERFILE]. Needs `docker buildx`, but no engine.
set -euo pipefail
dockerfile=${1:-$(dirname "$0")/Dockerfile}
text=$(<"$dockerfile")

# A base has a tag; `scratch` has none.
for base in $(sed -nE 's/^ARG [A-Z]+=([^@]+:[^@]+)(@.*)?$/\1/p' <<<"$text"); do
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$base") || digest=
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "error: $base: its registry gives no digest; nothing is pinned" >&2; exit 1; }
  text=$(sed -E "s|^(ARG [A-Z]+=${base//./\\.})(@.*)?$|\1@$digest|" <<<"$text")
  echo "$base@$digest"
done
printf '%s\n' "$text" >"$dockerfile"
