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

# What makes a static program of it, for `cargo build --config`. It can be loaded at any address, so
# that an attacker does not know where its code is. `--target` keeps these flags away from procedural
# macros, which must be dynamic.
static_program() {
  local triple=$1 flags packed=''
  # Relocations in a twentieth of the space, where the C library can read them at its start.
  if printf '2.36\n%s\n' "$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)" | sort -VC; then
    packed='"-C","link-arg=-Wl,-z,pack-relative-relocs",'
  fi
  # Random numbers come from the system call: a static program does not find it by name, and would
  # hold /dev/urandom open instead.
  flags='["-C","target-feature=+crt-static","-C","relocation-model=pie",'$packed'
          "--cfg","getrandom_backend=\"linux_getrandom\""]'
  printf 'target.%s.rustflags=%s' "$triple" "$flags"
}

# Ends unless a program is static and can be loaded at any address.
check_static_program() {
  local binary=$1
  if ! command -v readelf >/dev/null; then
    say 'build: not checked whether the program is static (there is no readelf)'
  elif LC_ALL=C readelf --wide --program-headers "$binary" | grep -w INTERP >/dev/null; then
    die "$binary asks for a dynamic linker, it should be static"
  elif ! LC_ALL=C readelf --wide --file-header "$binary" | grep -w DYN >/dev/null; then
    die "$binary has a fixed address, it should be loaded anywhere"
  fi
}

release_binary() { printf '%s/%s/release/zareba' "$(target_directory)" "$(host_triple)"; }
