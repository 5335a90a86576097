#!/usr/bin/env bash
# Sign the files of the jar, and pack the bundle that Maven Central takes by upload: deploy/bundle.sh [DIST]
#
# GPG signs, with the key that GPG_KEY names, or with its default key. Only what release.sh found complete is packed.
set -euo pipefail
dist=$(realpath "${1:-dist}")

fail() {
  echo "error: $*" >&2
  exit 1
}

[ ! -e "$dist/TRIAL" ] || fail "$dist is a trial: $(cat "$dist/TRIAL")"
pom=$(ls "$dist"/uldp-client-*.pom) || fail "$dist has no uldp-client-VERSION.pom; run: make release"
version=$(basename "${pom#*uldp-client-}" .pom)
group=$(sed -n 's/^  <groupId>\(.*\)<\/groupId>$/\1/p' "$pom")
(cd "$dist" && sha256sum --check --strict --quiet SHA256SUMS)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=${group//.//}/uldp-client/$version
mkdir -p "$work/$folder"
for name in "uldp-client-$version"{.pom,.jar,-sources.jar,-javadoc.jar}; do
  file=$work/$folder/$name
  cp "$dist/$name" "$file"
  gpg --batch --yes ${GPG_KEY:+--local-user "$GPG_KEY"} --armor --detach-sign "$file"
  md5sum "$file" | cut -d' ' -f1 >"$file.md5"
  sha1sum "$file" | cut -d' ' -f1 >"$file.sha1"
done
bundle=$dist/uldp-client-$version-bundle.zip
(cd "$work" && python3 -m zipfile -c "$bundle" "${group%%.*}")
echo "$bundle: $group:uldp-client:$version"
