#!/usr/bin/env bash
# Functions that find a version of Python on this machine, or make a root of the Debian release that has it. To be
# sourced: . tests/roots.sh
#
# A version is looked for on the PATH and where version managers keep it. Later runs find a root again.
readonly roots=${XDG_CACHE_HOME:-$HOME/.cache}/uldp-stream/roots

fail() {
  echo "error: $*" >&2
  exit 1
}

release_of() { # VERSION
  case $1 in
    3.13) echo trixie ;;
    3.14) echo forky ;;
    *) fail "Python $1 is not installed, and no Debian release has it; install it by a version manager, such as: uv python install $1" ;;
  esac
}

make_root() { # RELEASE
  [ "$(id -u)" = 0 ] || fail "only root can make a Debian root; become root, or install Python by a version manager"
  command -v debootstrap >/dev/null || fail "debootstrap is not installed: apt-get install debootstrap, or install Python by a version manager"
  mkdir -p "$roots"
  (
    flock 9 # two runs at once make it once
    [ -d "$roots/$1" ] && exit
    rm -rf "$roots/$1.part"
    # An older debootstrap does not know a newer release: all of Debian's are made as sid is.
    debootstrap --variant=minbase --include=python3,python3-venv,make,git,ca-certificates \
      "$1" "$roots/$1.part" "$(apt_mirror)" /usr/share/debootstrap/scripts/sid >"$roots/$1.log" \
      || fail "debootstrap failed, see $roots/$1.log"
    mv "$roots/$1.part" "$roots/$1"
  ) 9>"$roots/.lock"
}

apt_mirror() { # The mirror of this machine; debootstrap's own default where it has none of Debian.
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1
}

configure() { # ROOT: reach the network as this machine does
  local file
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    if [ -e "$file" ]; then cp -L "$file" "$1$file"; fi
  done
  for file in .config/pip/pip.conf .pip/pip.conf; do
    if [ -e "$HOME/$file" ]; then install -D "$HOME/$file" "$1/srv/$file"; fi
  done
}

in_root() { # ROOT SCRIPT ARGUMENT...: run a script of bash in a root
  # Mounts and processes of its own, which end with it however it ends.
  unshare --mount --pid --fork --kill-child bash -euc '
    mount -t proc proc "$1/proc"
    mount -t tmpfs tmpfs "$1/dev/shm"
    export HOME=/srv PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
    unset TMPDIR XDG_CACHE_HOME
    root=$1 script=$2
    shift 2
    exec chroot "$root" bash -euc "$script" bash "$@"
  ' bash "$@"
}

find_python() { # VERSION: print the first Python of it on this machine that has all that the project needs
  local python
  for python in "$(command -v "python$1" || true)" \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/"python$1" \
    "${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/uv/python}"/cpython-"$1"*/bin/"python$1" \
    "${ASDF_DATA_DIR:-$HOME/.asdf}"/installs/python/"$1".*/bin/"python$1" \
    "$HOME"/{.local,miniconda3,anaconda3}/bin/"python$1" /usr/{local/,}bin/"python$1" /opt/{python,homebrew}/bin/"python$1"; do
    if [ -x "$python" ] && "$python" -c 'import ensurepip, sqlite3, ssl' 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  return 1
}

prepare() { # VERSION
  local release
  find_python "$1" >/dev/null && return
  release=$(release_of "$1")
  make_root "$release"
  configure "$roots/$release"
  # Not every machine lets root mount, and not every root reaches the package index.
  in_root "$roots/$release" '
    python3 -m venv --clear /srv/probe
    /srv/probe/bin/python -m pip download --quiet --no-deps --dest /srv/probe packaging
  ' \
    || fail "the Debian root of Python $1 cannot be used on this machine; install Python $1 by a version manager"
}
