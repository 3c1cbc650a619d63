//! Which file is read.

use zareba_config::{ConfigFile, Configuration, Environment, LoadRequest, Settings};

use crate::case::Case;

const OPENHANDS: &str = "[core]\nruntime = \"local\"\n[sandbox]\ntimeout = 4\n";

fn timeout(case: &Case) -> u64 {
    case.load().settings.shell.timeout.as_secs()
}

#[test]
fn the_first_file_of_the_search_order_is_read_and_no_other() {
    let case = Case::new();
    assert_eq!(timeout(&case), 120);

    let case = case.file("config.toml", OPENHANDS);
    assert_eq!(timeout(&case), 4);

    let home = case.path("home");
    let case = case
        .variable("HOME", home)
        .file("home/.config/zareba/zareba.toml", "shell.timeout = 3");
    assert_eq!(timeout(&case), 3);

    let config_home = case.path("config-home");
    let case = case
        .variable("XDG_CONFIG_HOME", config_home)
        .file("config-home/zareba/zareba.toml", "shell.timeout = 2");
    assert_eq!(timeout(&case), 2);

    let case = case.file("zareba.toml", "shell.timeout = 1");
    assert_eq!(timeout(&case), 1);
    assert_eq!(case.load().file, Some(case.path("zareba.toml")));

    let in_variable = case.path("variable.toml");
    let case = case
        .variable("ZAREBA_CONFIG", in_variable)
        .file("variable.toml", "shell.timeout = 5");
    assert_eq!(timeout(&case), 5);

    let case = case
        .file("named.toml", "shell.timeout = 6")
        .named("named.toml");
    assert_eq!(timeout(&case), 6);
    assert_eq!(
        case.load().settings.runtime.kind.as_str(),
        "native",
        "files are not merged"
    );
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
        assert_eq!(configuration.file, None, "{text}");
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
    })
    .unwrap();
    assert_eq!(
        (configuration.settings, configuration.file),
        (Settings::default(), None)
    );
}
