# shellcheck shell=bash
# Makes the virtual environments that the foreign clients run in.
#
# Sourced by `setup` and `setup-swerex`. The environments live in the user's cache, outside the
# tree, so a second run costs nothing and a checkout stays clean. Each environment carries a stamp
# with the hash of the requirements it was made from: a changed pin makes a new one.

# What a test runner reads as "cannot run here", as opposed to "failed".
readonly UNAVAILABLE=77

# An index that does not answer must not hold up a test run for longer than this many seconds.
readonly INSTALL_LIMIT=900

venv_cache_dir() {
    printf '%s/zareba/venvs\n' "${XDG_CACHE_HOME:-$HOME/.cache}"
}

# Ends the run with the reason as its last line.
unavailable() {
    printf '%s\n' "$1" >&2
    exit "$UNAVAILABLE"
}

# Prints the first interpreter of one of the given versions ("3.12"), best first.
#
# A pyenv shim is on the PATH even when its version is not selected, so a candidate counts only if
# it runs and says what it is.
find_python() {
    local version candidate
    for version in "$@"; do
        while IFS= read -r candidate; do
            [[ -n $candidate && -x $candidate ]] || continue
            if [[ $("$candidate" -c 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) == "$version" ]]; then
                printf '%s\n' "$candidate"
                return 0
            fi
        done < <(python_candidates "$version")
    done
    return 1
}

python_candidates() {
    local version=$1 root
    type -aP "python$version" 2>/dev/null
    root=${PYENV_ROOT:-$HOME/.pyenv}/versions
    if [[ -d $root ]]; then
        find "$root" -mindepth 3 -maxdepth 3 -path "*/bin/python$version" 2>/dev/null | sort -V -r
    fi
    if command -v uv >/dev/null 2>&1; then
        uv python find --no-python-downloads "$version" 2>/dev/null
    fi
    type -aP python3 2>/dev/null
}

# make_venv NAME PYTHON REQUIREMENTS...: prints the directory of a complete environment.
#
# The requirement files name every package with its version, so nothing is resolved and two
# machines get the same client. Parallel runs wait for one another on a lock; an environment whose
# installation was interrupted has no stamp and is made again.
make_venv() {
    local name=$1 python=$2
    shift 2
    local cache dir stamp want file
    local files=()
    cache=$(venv_cache_dir)
    dir=$cache/$name
    stamp=$dir/.zareba-stamp
    want=$({ "$python" -c 'import sys; print(sys.version)'; cat "$@"; } | sha256sum | cut -d' ' -f1)
    for file in "$@"; do
        files+=(-r "$file")
    done

    mkdir -p "$cache" || unavailable "cannot write to the cache directory $cache"
    exec 9>"$cache/$name.lock"
    if ! flock --wait "$INSTALL_LIMIT" 9; then
        unavailable "another run has been installing $name for more than $INSTALL_LIMIT seconds"
    fi
    if [[ $(cat "$stamp" 2>/dev/null) != "$want" ]]; then
        printf 'installing %s into %s (once; this takes a minute or two)\n' "$name" "$dir" >&2
        rm -rf "$dir"
        "$python" -m venv "$dir" >&2 || unavailable "$python cannot make a virtual environment"
        if ! timeout "$INSTALL_LIMIT" "$dir/bin/python" -m pip install --quiet --no-input \
            --disable-pip-version-check --no-deps "${files[@]}" >&2; then
            rm -rf "$dir"
            unavailable "no package index reachable for $name, or it lacks a pinned version"
        fi
        printf '%s\n' "$want" >"$stamp"
    fi
    exec 9>&-
    printf '%s\n' "$dir"
}
