# Shared by the scripts beside it: sourced, never run. Leaves the caller in the checkout's root.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit

# rustup installs here, and a shell that was open before does not know it yet.
if ! command -v cargo >/dev/null && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
  PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
fi

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $*"
  exit 1
}

is_root() { [ "$(id -u)" = 0 ]; }

# 754 -> "12 min 34 s"
human_time() {
  if [ "$1" -lt 60 ]; then
    printf '%d s' "$1"
  else
    printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
  fi
}

host_triple() { rustc -vV | sed -n 's/^host: //p'; }

# Where cargo builds to: not always ./target.
target_directory() {
  cargo metadata --no-deps --format-version 1 |
    sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
}

release_binary() { printf '%s/%s/release/zareba' "$(target_directory)" "$(host_triple)"; }
