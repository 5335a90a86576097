#!/usr/bin/env bash
# Run what is needed under other versions of Python, of the last commit: tests/pythons.sh 3.12 3.13 3.14
#
#     tests/pythons.sh VERSION...                # `make demo` and `make test`; tests that are marked slow are left out
#     tests/pythons.sh --wheel DIST VERSION...   # the trial of the wheel in DIST: it is installed alone, and used
#     tests/pythons.sh --prepare VERSION...      # nothing; roots are made
#
# A version that is nowhere on this machine is run in a root of the Debian release that has it; see tests/roots.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
. tests/roots.sh

# What runs in the folder of a checkout: pip finds its settings, and no variable of an outer make is left.
run_tests() { # PYTHON
  # Both at once, because the demo mostly waits for its devices.
  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u VIRTUAL_ENV PYTEST_ADDOPTS="-m 'not slow'" \
    make --jobs=2 --output-sync demo test PYTHON="$1"
}

run_wheel() { # PYTHON
  "$1" -m tests.release dist wheel
}

in_checkout() { # WORK FOLDER VERSION PYTHON
  cd "$2"
  "$4" --version
  [[ $("$4" --version) == "Python $3."* ]] \
    || { echo "error: $4 is another Python than $3; if it is in a Debian root, remove that, and the next run makes it again" >&2; exit 1; }
  "$1" "$4"
}

check_out() { # FOLDER: the last commit, and the wheel that is to be tried
  checkouts+=("$1")
  git clone --quiet . "$1"
  if [ -n "$dist" ]; then mkdir "$1/dist" && cp "$dist"/*.whl "$1/dist"; fi
}

checkouts=()
trap 'rm -rf "${checkouts[@]}"' EXIT
work=run_tests dist=
case ${1-} in
  --prepare) work= && shift ;;
  --wheel) work=run_wheel dist=$(realpath "$2") && shift 2 ;;
esac
[ $# -gt 0 ] || fail "name versions of Python: tests/pythons.sh 3.12 3.13 3.14"
for version in "$@"; do
  prepare "$version"
  if [ -z "$work" ]; then
    continue
  elif python=$(find_python "$version"); then
    checkout=$(mktemp -d)
    check_out "$checkout"
    (in_checkout "$work" "$checkout" "$version" "$python")
  else
    root=$roots/$(release_of "$version")
    checkout=$(mktemp -d "$root/srv/checkout.XXXXXX")
    check_out "$checkout"
    in_root "$root" "$(declare -f "$work" in_checkout); in_checkout \"\$@\"" "$work" "${checkout#"$root"}" "$version" python3
  fi
done
