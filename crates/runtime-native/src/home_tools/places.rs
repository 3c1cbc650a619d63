//! The places below a home that sandboxes may be shown.
//!
//! What is added here is seen by every workload where `native.home_tools` is on. A place holds what an
//! installer has put there, never what a user or a login writes: `.cargo/bin`, and not `.cargo`, which has
//! `credentials.toml`; parts of a version of Node, and not its `etc`, which has an `npmrc`.

/// A place below the home.
#[derive(Debug)]
pub(super) struct Place {
    /// Its path; `*` is any name.
    pub(super) path: &'static str,
    /// What of it is shown; without any, all of it.
    pub(super) parts: &'static [&'static str],
    /// Whether programs are looked for in it, or in its `bin`.
    pub(super) searched: Searched,
}

/// Whether programs are found by name in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Searched {
    /// Where the user's own `PATH` has it.
    Never,
    /// Always.
    Always,
    /// In that of the highest version, where the user's own `PATH` has none of them.
    Newest,
}

/// The directory whose programs are shown one by one.
pub(super) const PROGRAMS_BY_NAME: &str = ".local/bin";

/// Parts of what is installed below a directory of its own. `etc` is not among them: settings with tokens
/// are there.
const INSTALLED: [&str; 8] = [
    "bin",
    "lib",
    "lib64",
    "libexec",
    "include",
    "share",
    "ssl",
    "pyvenv.cfg",
];

pub(super) const PLACES: [Place; 27] = [
    all(".cargo/bin", Searched::Always),
    all(".rustup/toolchains", Searched::Never),
    all(".rustup/settings.toml", Searched::Never),
    installed(".local/share/uv/python/*", Searched::Never),
    installed(".local/share/uv/tools/*", Searched::Never),
    installed(".local/share/pipx/venvs/*", Searched::Never),
    all(".pyenv/shims", Searched::Always),
    all(".pyenv/bin", Searched::Always),
    all(".pyenv/libexec", Searched::Never),
    all(".pyenv/version", Searched::Never),
    installed(".pyenv/versions/*", Searched::Never),
    installed(".nvm/versions/node/*", Searched::Newest),
    installed(
        ".local/share/fnm/node-versions/*/installation",
        Searched::Newest,
    ),
    installed(".volta/tools/image/node/*", Searched::Newest),
    all(".bun/bin", Searched::Always),
    all(".bun/install/global/node_modules", Searched::Never),
    all(".deno/bin", Searched::Always),
    all("go/bin", Searched::Always),
    installed("miniconda3", Searched::Never),
    installed("miniconda3/envs/*", Searched::Never),
    installed("miniforge3", Searched::Never),
    installed("miniforge3/envs/*", Searched::Never),
    installed("mambaforge", Searched::Never),
    installed("mambaforge/envs/*", Searched::Never),
    installed("anaconda3", Searched::Never),
    installed("anaconda3/envs/*", Searched::Never),
    installed(".conda/envs/*", Searched::Never),
];

const fn all(path: &'static str, searched: Searched) -> Place {
    Place {
        path,
        parts: &[],
        searched,
    }
}

const fn installed(path: &'static str, searched: Searched) -> Place {
    Place {
        path,
        parts: &INSTALLED,
        searched,
    }
}
