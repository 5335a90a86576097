#!/usr/bin/env bash
# Build what a release publishes into dist, in a clean clone of the last commit, and try each artefact in an empty
# environment. deploy/releasing.md says what comes after it.
#
#     deploy/release.sh --check   # only whether the versions agree
#     deploy/release.sh           # all of it; needs Node, Java 17 and Maven
#
# Variables: AUTHORS, URL and GROUP fill in who publishes (deploy/fill_in.py); CI_PASSED=1 says that .ci/run and
# `make nightly` passed at this commit; KEY is the path of an SSH key, which signs the digests. While one is open, the
# result is a trial: dist/TRIAL says why, and nobody should publish it.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "error: $*" >&2
  exit 1
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
npm_version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' clients/typescript/package.json)
jar_version=$(sed -n 's/^  <version>\(.*\)<\/version>$/\1/p' clients/kotlin/pom.xml)
date=$(sed -n "s/^## $version - //p" CHANGELOG.md)
[ "$npm_version" = "$version" ] || fail "clients/typescript/package.json has version $npm_version, pyproject.toml $version"
[ "$jar_version" = "$version" ] || fail "clients/kotlin/pom.xml has version $jar_version, pyproject.toml $version"
grep -q "^version: $version$" CITATION.cff || fail "CITATION.cff has another version than pyproject.toml, $version"
[ -n "$date" ] || fail "CHANGELOG.md has no heading for $version"
released=$(sed -n 's/^date-released: //p' CITATION.cff)
[ "$date" = "${released:-unreleased}" ] \
  || fail "CHANGELOG.md dates $version '$date', and CITATION.cff '${released:-unreleased}'; write one date, as date-released: 2026-01-31"
echo "version $version everywhere"
[ "${1:-}" = --check ] && exit 0

[ -z "$(git status --porcelain)" ] || fail "files are changed or new; commit them, or release from a clean clone"
# A variable of an outer make, or of an environment of Python, is none of the clone's.
unset MAKEFLAGS MFLAGS MAKELEVEL VIRTUAL_ENV
root=$PWD clone=$PWD/build/release dist=$PWD/dist
rm -rf "$clone" "$dist"
mkdir -p "$dist"
git clone --quiet . "$clone"
cd "$clone"

open=$("${PYTHON:-python3}" deploy/fill_in.py .)
[ -n "${CI_PASSED:-}" ] || open="$open CI_PASSED"
[ -n "${KEY:-}" ] || open="$open KEY"
[ -n "$released" ] || open="$open CHANGELOG.md:date"
read -ra open <<<"${open//$'\n'/ }"
if [ ${#open[@]} -gt 0 ]; then
  echo "warning: this is a trial, because these are open: ${open[*]}; see deploy/releasing.md"
  printf 'Not for publishing. Open: %s\n' "${open[*]}" >"$dist/TRIAL"
fi

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # whoever builds this commit with these variables gets the same bytes
export SOURCE_DATE_EPOCH
make setup
.venv/bin/python -m build --installer uv --outdir "$dist" .
(
  cd clients/typescript
  npm ci --no-audit --no-fund --silent
  npm run --silent build
  npm pack --silent --pack-destination "$dist"
)
mvn --batch-mode --quiet --file clients/kotlin -Prelease clean package
cp "clients/kotlin/target/uldp-client-$version"{,-sources,-javadoc}.jar "$dist"
cp clients/kotlin/pom.xml "$dist/uldp-client-$version.pom"
make docs sbom
cp build/sbom.json "$dist/uldp-stream-$version.cdx.json"
tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --directory=build site \
  | gzip --no-name >"$dist/uldp-stream-$version-docs.tar.gz"
(cd "$dist" && LC_ALL=C && sha256sum -- * >SHA256SUMS)

"${PYTHON:-python3}" -m tests.release "$dist"
cd "$root"
tests/pythons.sh --wheel "$dist" ${PYTHONS:-3.12 3.13 3.14}

if [ -n "${KEY:-}" ]; then
  ssh-keygen -Y sign -q -f "$KEY" -n uldp-stream "$dist/SHA256SUMS"
fi
cat "$dist/SHA256SUMS"
if [ ${#open[@]} -gt 0 ]; then
  echo "dist is a trial; open: ${open[*]}"
else
  echo "dist is release $version; go on with step 6 of deploy/releasing.md"
fi
