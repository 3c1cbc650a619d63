//! Which file is read.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use zareba_config::{
    ConfigFile, Configuration, Environment, FilePlace, FileScope, LoadRequest, Settings,
    UntrustedSettings,
};

use crate::case::Case;

const OPENHANDS: &str = "[core]\nruntime = \"local\"\n[sandbox]\ntimeout = 4\n";

fn timeout(case: &Case) -> u64 {
    case.load().settings.shell.timeout.as_secs()
}

#[test]
fn the_file_of_a_project_is_stronger_than_the_users_and_that_than_the_systems() {
    let case = Case::new();
    assert_eq!(timeout(&case), 120);

    let case = case.file(
        "etc/zareba.toml",
        "shell.timeout = 2\nfiles.scope = \"workspace\"",
    );
    assert_eq!(timeout(&case), 2);

    let home = case.path("home");
    let case = case.variable("HOME", home).file(
        "home/.config/zareba/zareba.toml",
        "shell.timeout = 3\nnative.pids = 99",
    );
    assert_eq!(timeout(&case), 3);

    let case = case.file("config.toml", OPENHANDS);
    assert_eq!(timeout(&case), 4);

    let case = case.file("zareba.toml", "shell.timeout = 5");
    assert_eq!(timeout(&case), 5);
    let configuration = case.load();
    let files: Vec<(PathBuf, FilePlace, bool)> = configuration
        .files
        .iter()
        .map(|file| (file.path.clone(), file.place, file.is_trusted))
        .collect();
    assert_eq!(
        files,
        [
            (case.path("etc/zareba.toml"), FilePlace::System, true),
            (
                case.path("home/.config/zareba/zareba.toml"),
                FilePlace::User,
                true
            ),
            (case.path("zareba.toml"), FilePlace::Project, true),
        ]
    );
    let Settings { files, native, .. } = configuration.settings;
    assert_eq!((files.scope, native.pids), (FileScope::Workspace, 99));
}

#[test]
fn the_users_directory_is_the_one_of_the_specification() {
    let case = Case::new().file("home/.config/zareba/zareba.toml", "shell.timeout = 3");
    let (home, config_home) = (case.path("home"), case.path("config-home"));
    let case = case
        .variable("HOME", home)
        .variable("XDG_CONFIG_HOME", config_home)
        .file("config-home/zareba/zareba.toml", "shell.timeout = 2");
    assert_eq!(timeout(&case), 2);
}

#[test]
fn a_file_that_is_named_is_the_only_one() {
    let case = Case::new()
        .file("etc/zareba.toml", "native.pids = 99")
        .file("case-home/.config/zareba/zareba.toml", "native.pids = 98")
        .file("zareba.toml", "native.pids = 97");
    let in_variable = case.path("variable.toml");
    let case = case
        .variable("ZAREBA_CONFIG", in_variable)
        .file("variable.toml", "shell.timeout = 5");
    assert_eq!((timeout(&case), case.load().settings.native.pids), (5, 512));
    let case = case
        .file("named.toml", "shell.timeout = 6")
        .named("named.toml");
    assert_eq!((timeout(&case), case.load().settings.native.pids), (6, 512));
}

#[test]
fn the_users_file_is_the_users_also_where_it_is_found_as_that_of_a_project() {
    let case = Case::new()
        .untrusted()
        .file("zareba.toml", "native.pids = 99");
    let link = case.path("case-home/.config/zareba");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(case.path(""), link).unwrap();
    assert_eq!(case.load().settings.native.pids, 99);
}

#[test]
fn a_file_that_others_can_write_is_not_trusted() {
    let user = "case-home/.config/zareba/zareba.toml";
    for (name, case) in [
        ("etc/zareba.toml", Case::new()),
        (user, Case::new()),
        ("named.toml", Case::new().named("named.toml")),
    ] {
        let case = case.file(name, "native.pids = 99");
        for mode in [0o620, 0o602] {
            fs::set_permissions(case.path(name), Permissions::from_mode(mode)).unwrap();
            assert_eq!(
                case.complaints(),
                [format!(
                    "cannot trust `{name}`: other users may write to it; take that away with `chmod go-w`"
                )]
            );
        }
    }
}

#[test]
fn a_file_of_a_project_that_would_keep_us_waiting_is_refused() {
    let case = Case::new();
    let made = std::process::Command::new("mkfifo")
        .arg(case.path("zareba.toml"))
        .status();
    assert!(made.unwrap().success());
    assert_eq!(case.complaints(), ["cannot read `zareba.toml`"]);
}

#[test]
fn a_relative_configuration_directory_is_ignored() {
    let home = "home";
    let case = Case::new()
        .variable("XDG_CONFIG_HOME", home)
        .variable("HOME", home)
        .file("home/zareba/zareba.toml", "shell.timeout = 2");
    assert_eq!(timeout(&case), 120);
}

#[test]
fn the_config_file_of_another_program_is_left_alone() {
    for text in [
        "baseURL = \"https://example.org\"\n[security]\nenableInlineShortcodes = false\n",
        "core = 3\n",
        "not toml at all",
        "",
    ] {
        let configuration = Case::new().file("config.toml", text).load();
        assert_eq!(configuration.files, [], "{text}");
    }
}

#[test]
fn a_broken_openhands_file_is_reported_and_not_taken_for_a_foreign_one() {
    let case = Case::new().file(
        "config.toml",
        "[core]\nruntime = \"local\"\n[sandbox]\ntimeout = = 3\n",
    );
    let complaints = case.complaints();
    assert!(
        complaints[0].starts_with("config.toml:4:"),
        "{complaints:?}"
    );
}

#[test]
fn a_named_file_that_is_not_there_is_an_error() {
    let case = Case::new().named("missing.toml");
    assert_eq!(case.complaints(), ["cannot read `missing.toml`"]);
    let missing = case.path("also-missing.toml");
    let case = Case::new().variable("ZAREBA_CONFIG", missing);
    assert!(case.try_load().is_err());
}

#[test]
fn a_file_that_cannot_be_a_configuration_is_refused() {
    let case = Case::new().file("zareba.toml", &"#".repeat(1024 * 1024 + 1));
    assert_eq!(
        case.complaints(),
        ["`zareba.toml` is larger than 1048576 bytes"]
    );
    let case = Case::new();
    std::fs::write(case.path("zareba.toml"), b"# \xff").unwrap();
    assert_eq!(case.complaints(), ["`zareba.toml` is not UTF-8 text"]);
    let case = Case::new();
    std::fs::create_dir(case.path("zareba.toml")).unwrap();
    assert_eq!(case.complaints(), ["cannot read `zareba.toml`"]);
}

#[test]
fn dotted_keys_inline_tables_and_sections_mean_the_same() {
    for text in [
        "[shell]\ntimeout = 7\nno_change_timeout = 2.5\n",
        "shell.timeout = 7\nshell.no_change_timeout = 2.5\n",
        "shell = { timeout = 7, no_change_timeout = 2.5 }\n",
    ] {
        let shell = Case::new().file("zareba.toml", text).load().settings.shell;
        assert_eq!(shell.timeout.as_millis(), 7000, "{text}");
        assert_eq!(shell.no_change_timeout.as_millis(), 2500, "{text}");
    }
}

#[test]
fn no_file_is_read_where_none_is_wanted() {
    let case = Case::new().file("zareba.toml", "shell.timeout = 1");
    let environment = Environment::from_pairs([("ZAREBA_CONFIG", case.path("zareba.toml"))]);
    let configuration = Configuration::load(&LoadRequest {
        file: ConfigFile::Nothing,
        environment: &environment,
        overrides: &[],
        untrusted: UntrustedSettings::Refuse,
    })
    .unwrap();
    assert_eq!(
        (configuration.settings, configuration.files),
        (Settings::default(), vec![])
    );
}
