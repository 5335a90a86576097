#!/usr/bin/env bash
# What has to be true before a release, and what it publishes: dist gets the source distribution, the wheel, the package
# for npm, the jar, the SBOM of the image, and SHA256SUMS. With KEY, the path of an SSH key, the digests are signed.
#
#     deploy/release.sh --check   # only whether the versions agree
#     deploy/release.sh           # builds in a clean clone; needs Node, Java 17 and Maven
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "error: $*" >&2
  exit 1
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
npm_version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' clients/typescript/package.json)
jar_version=$(sed -n 's/^  <version>\(.*\)<\/version>$/\1/p' clients/kotlin/pom.xml)
[ "$npm_version" = "$version" ] || fail "clients/typescript/package.json has version $npm_version, pyproject.toml $version"
[ "$jar_version" = "$version" ] || fail "clients/kotlin/pom.xml has version $jar_version, pyproject.toml $version"
grep -q "^version: $version$" CITATION.cff || fail "CITATION.cff has another version than pyproject.toml, $version"
grep -q "^## $version - " CHANGELOG.md || fail "CHANGELOG.md has no heading for $version"
echo "version $version everywhere"
[ "${1:-}" = --check ] && exit 0

[ -z "$(git status --porcelain)" ] || fail "files are changed or new; commit them, or release from a clean clone"
[ -n "${CI_PASSED:-}" ] || fail "say that .ci/run and make nightly passed at this commit: CI_PASSED=1 deploy/release.sh"
! grep -q "^## $version - unreleased" CHANGELOG.md || echo "warning: CHANGELOG.md calls $version unreleased; write its date"

rm -rf dist
make setup
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # whoever builds this commit gets the same wheel, byte for byte
export SOURCE_DATE_EPOCH
.venv/bin/python -m build --outdir dist .
(cd clients/typescript && npm ci --no-audit --no-fund --silent && npm run --silent build && npm pack --silent --pack-destination ../../dist)
mvn --batch-mode --quiet --file clients/kotlin clean package
cp "clients/kotlin/target/uldp-client-$version.jar" dist
make sbom
cp build/sbom.json "dist/uldp-stream-$version.cdx.json"

# The wheel alone, in an environment that has nothing else.
python3 -m venv --clear build/release
build/release/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
[ "$(build/release/bin/uldp --version)" = "uldp, version $version" ] || fail "the wheel says another version"

(cd dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
if [ -n "${KEY:-}" ]; then
  ssh-keygen -Y sign -f "$KEY" -n uldp-stream dist/SHA256SUMS
fi

cat <<TEXT
Left to do by hand:
  1. Name authors and URLs in pyproject.toml, package.json and pom.xml, once they exist.
  2. Write the date of the release into CHANGELOG.md.
  3. Install the packages of dist on another machine, and go through docs/tutorial.md.
  4. Tag this commit: git tag -s v$version
  5. Publish dist, with SHA256SUMS and its signature.
TEXT
