//! What is found in made homes. What becomes of it in a real sandbox is for the integration tests.

use std::os::unix::fs::{chown, symlink};

use tempfile::TempDir;

use super::*;

/// A home, which must not be below `/tmp`.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new_in("/var/tmp").unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn program(&self, name: &str) {
        self.text(name, "\x7fELF");
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    fn find(&self, search_path: &str, workspace: Option<&str>) -> HomeTools {
        let workspace = workspace.map(|name| self.path(name));
        HomeTools::find(self.0.path(), search_path.as_ref(), workspace.as_deref()).unwrap()
    }

    /// Paths below the home.
    fn below<'a>(&self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
        let below = |path: &PathBuf| {
            let below = path.strip_prefix(self.0.path());
            below.unwrap_or(path).to_str().unwrap().to_owned()
        };
        paths.into_iter().map(below).collect()
    }

    fn shown(&self) -> Vec<String> {
        self.below(&self.find("", None).shown)
    }
}

#[test]
fn a_place_is_shown_and_nothing_beside_it() {
    let home = Home::new();
    for program in [
        ".cargo/bin/cargo",
        ".rustup/toolchains/stable/bin/rustc",
        ".pyenv/versions/3.12.1/bin/python3.12",
        ".nvm/versions/node/v20.1.0/bin/node",
        "go/bin/gopls",
    ] {
        home.program(program);
    }
    for secret in [
        ".cargo/credentials.toml",
        ".cargo/config.toml",
        ".netrc",
        ".nvm/versions/node/v20.1.0/etc/npmrc",
        ".pyenv/versions/3.12.1/pip.conf",
        ".ssh/id_ed25519",
        "go/pkg/mod/private/key",
    ] {
        home.text(secret, "secret");
    }
    let shown = [
        ".cargo/bin",
        ".nvm/versions/node/v20.1.0/bin",
        ".pyenv/versions/3.12.1/bin",
        ".rustup/toolchains",
        "go/bin",
    ];
    assert_eq!(home.shown(), shown);
    let search = home.below(&home.find("", None).search);
    assert_eq!(
        search,
        [".cargo/bin", ".nvm/versions/node/v20.1.0/bin", "go/bin"]
    );
    let variables: Vec<&str> = home
        .find("", None)
        .variables()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(variables, ["PYENV_ROOT"]);
}

#[test]
fn a_place_that_is_a_link_or_lies_behind_one_is_not_shown() {
    let home = Home::new();
    home.text(".ssh/id_ed25519", "secret");
    home.program("elsewhere/bin/cargo");
    home.link(".cargo", home.path("elsewhere"));
    home.link(".deno/bin", home.path(".ssh"));
    home.link(".pyenv/versions/evil", home.0.path());
    assert_eq!(home.shown(), [""; 0]);
    assert_eq!(home.find("", None).links, []);
}

/// Such a path would end a list of directories, or the quotes of a start-up file.
#[test]
fn a_home_with_a_colon_or_a_quote_in_its_name_is_not_shown() {
    let home = Home::new();
    home.program(".cargo/bin/cargo");
    for name in ["a:b", "a'b"] {
        let odd = home.path(name);
        fs::create_dir_all(odd.join(".local/bin")).unwrap();
        assert!(
            HomeTools::find(&odd, OsStr::new(""), None).is_none(),
            "{name}"
        );
    }
}

/// Several places begin with the same directory, and a link can be made but once.
#[test]
fn a_link_that_several_places_begin_with_is_kept_once() {
    let home = Home::new();
    home.program("miniforge3/bin/conda");
    home.link("miniconda3", home.path("miniforge3"));
    let tools = home.find("", None);
    let links: Vec<PathBuf> = tools.links.iter().map(|(link, _)| link.clone()).collect();
    assert_eq!(home.below(&links), ["miniconda3"]);
}

#[test]
fn links_between_places_are_kept_and_others_are_not() {
    let home = Home::new();
    home.program(".local/share/uv/python/cpython-3.12.7/bin/python3.12");
    home.link(
        ".local/share/uv/python/cpython-3.12",
        home.path(".local/share/uv/python/cpython-3.12.7"),
    );
    home.link(
        ".local/bin/python3.12",
        "../share/uv/python/cpython-3.12/bin/python3.12",
    );
    home.text(".ssh/id_ed25519", "secret");
    home.link(".local/bin/key", "../../.ssh/id_ed25519");
    let tools = home.find("", None);
    let links: Vec<PathBuf> = tools.links.iter().map(|(link, _)| link.clone()).collect();
    assert_eq!(
        home.below(&links),
        [
            ".local/bin/python3.12",
            ".local/share/uv/python/cpython-3.12",
        ]
    );
    let python = home.path(".local/bin/python3.12");
    assert_eq!(tools.program("python3.12"), Some(python));
    assert_eq!(tools.program("key"), None);
}

/// A script may hold a token.
#[test]
fn of_a_directory_for_everything_only_compiled_programs_are_shown() {
    let home = Home::new();
    home.program(".local/bin/uv");
    home.text(".local/bin/deploy", "#!/bin/sh\nTOKEN=secret\n");
    assert_eq!(home.shown(), [".local/bin/uv"]);
    let tools = home.find("", None);
    assert_eq!(tools.program("uv"), Some(home.path(".local/bin/uv")));
    assert_eq!(tools.program("deploy"), None);
}

#[test]
fn programs_are_searched_in_the_order_of_the_users_own_path() {
    let home = Home::new();
    for version in ["v18.2.0", "v20.1.0", "v9.9.9"] {
        home.program(&format!(".nvm/versions/node/{version}/bin/node"));
    }
    home.program(".cargo/bin/cargo");
    let node = |version: &str| home.path(&format!(".nvm/versions/node/{version}/bin"));
    let cargo = home.path(".cargo/bin");
    assert_eq!(home.find("", None).search, [cargo.clone(), node("v20.1.0")]);
    let path = format!(
        "/usr/bin:{}:{}",
        node("v18.2.0").display(),
        home.path(".ssh").display()
    );
    assert_eq!(home.find(&path, None).search, [node("v18.2.0"), cargo]);
}

#[test]
fn the_installation_of_an_environments_interpreter_is_shown() {
    let home = Home::new();
    home.program("pythons/3.12/bin/python3.12");
    home.text("pythons/3.12/lib/python3.12/os.py", "");
    home.text("pythons/3.12/secret", "secret");
    home.link(
        "project/.venv/bin/python",
        home.path("pythons/3.12/bin/python3.12"),
    );
    let tools = home.find("", Some("project"));
    assert_eq!(
        home.below(&tools.shown),
        ["pythons/3.12/bin", "pythons/3.12/lib"]
    );
    let own = (home.path("project/.venv"), "/workspace/.venv".into());
    assert_eq!(tools.links, [own]);
}

/// A repository has made the link.
#[test]
fn a_workspace_cannot_have_anything_else_shown() {
    let home = Home::new();
    home.program("private/bin/python3.12");
    home.text("private/lib/secret", "secret");
    home.program(".hidden/bin/python3.12");
    home.text(".hidden/lib/python3.12/os.py", "");
    home.program("bin/python3.12");
    home.text("lib/python3.12/os.py", "");
    for (number, at) in ["private", ".hidden", "."].into_iter().enumerate() {
        let project = format!("project{number}");
        let interpreter = home.path(at).join("bin/python3.12");
        home.link(&format!("{project}/venv/bin/python"), interpreter);
        assert!(home.find("", Some(&project)).is_empty(), "{at}");
    }
}

#[test]
fn a_home_that_is_part_of_the_machine_is_not_shown() {
    let below_tmp = TempDir::new_in("/tmp").unwrap();
    for home in [below_tmp.path(), Path::new("/usr"), Path::new("/")] {
        assert_eq!(HomeTools::find(home, OsStr::new(""), None), None);
    }
}

/// As root, where a workload is another user.
#[test]
#[ignore = "needs root"]
fn what_another_user_owns_is_not_shown() {
    let home = Home::new();
    home.program(".cargo/bin/cargo");
    home.program("go/bin/gopls");
    chown(home.path("go/bin"), Some(4242), None).unwrap();
    assert_eq!(home.shown(), [".cargo/bin"]);
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(home.path(".cargo/bin"), closed).unwrap();
    assert_eq!(home.shown(), [""; 0]);
    chown(home.0.path(), Some(4242), None).unwrap();
    assert_eq!(HomeTools::find(home.0.path(), OsStr::new(""), None), None);
}
