//! The interpreter of a workspace's virtual environment.
//!
//! An environment is a directory with a link to an interpreter, which may be in the home. Where no known
//! place has it, the installation that it is part of is shown, if it is one: a program `pythonX.Y` in
//! `bin` beside the standard library in `lib`. The link is part of the workspace, which is hostile, so
//! nothing else that it leads to is shown, and nothing behind a name that begins with a dot.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{Scan, is_compiled, is_plain};

/// Names that tools give to environments.
const NAMES: [&str; 2] = [".venv", "venv"];

/// A file of the standard library, which no environment has.
const LANDMARK: &str = "os.py";

impl Scan {
    /// Shows what the environments of a workspace need.
    pub(super) fn virtual_environments(&mut self, workspace: Option<&Path>) {
        let Some(workspace) = workspace else {
            return;
        };
        for name in NAMES {
            let environment = workspace.join(name);
            let Ok(interpreter) = fs::canonicalize(environment.join("bin/python")) else {
                continue;
            };
            if !interpreter.starts_with(&self.tools.home) {
                continue;
            }
            if !self.tools.shows(&interpreter) {
                self.installation(&interpreter);
            }
            self.at_its_own_path(&environment, name);
        }
    }

    /// Shows an installation of Python by its interpreter.
    fn installation(&mut self, interpreter: &Path) {
        let name = interpreter.file_name().unwrap_or_default();
        let Some(prefix) = interpreter.ancestors().nth(2) else {
            return;
        };
        let is_hidden = |name: &OsStr| name.as_bytes().starts_with(b".");
        let below = prefix.strip_prefix(&self.tools.home);
        let is_open =
            below.is_ok_and(|below| !below.as_os_str().is_empty() && !below.iter().any(is_hidden));
        let library = prefix.join("lib");
        let is_installation = name.as_bytes().starts_with(b"python")
            && interpreter.parent() == Some(prefix.join("bin").as_path())
            && is_compiled(interpreter)
            && library.join(name).join(LANDMARK).is_file();
        if is_open && is_installation && self.is_real(&prefix.join("bin")) && self.is_real(&library)
        {
            self.show(&prefix.join("bin"));
            self.show(&library);
        }
    }

    /// Programs of an environment name its interpreter by the path that it has outside.
    fn at_its_own_path(&mut self, environment: &Path, name: &str) {
        let home = self.tools.home.as_path();
        let is_free = !self
            .tools
            .shown
            .iter()
            .any(|shown| environment.starts_with(shown) || shown.starts_with(environment));
        let is_real = fs::symlink_metadata(environment).is_ok_and(|found| found.is_dir());
        if environment.starts_with(home) && is_free && is_real && is_plain(environment) {
            let inside = PathBuf::from(crate::native::WORKSPACE).join(name);
            self.tools.links.push((environment.to_owned(), inside));
        }
    }
}
