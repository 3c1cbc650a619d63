//! Every complaint names its place, its key and what was probably meant.

use crate::case::Case;

fn check(text: &str, expected: &[&str]) {
    let complaints = Case::new().file("zareba.toml", text).complaints();
    assert_eq!(complaints, expected, "{text}");
}

#[test]
fn all_mistakes_of_a_file_are_reported_at_once_in_the_order_of_their_lines() {
    check(
        "[shell]\n\
         timout = 30\n\
         timeout = \"soon\"\n\
         \n\
         [files]\n\
         auto_lint = 1\n\
         scope = \"workspce\"\n\
         \n\
         [runtme]\n\
         kind = \"cli\"\n",
        &[
            "zareba.toml:2:1: unknown key `shell.timout`; did you mean `shell.timeout`?",
            "zareba.toml:3:1: `shell.timeout` must be a number of seconds, not a string",
            "zareba.toml:6:1: `files.auto_lint` must be a boolean, not an integer",
            "zareba.toml:7:1: `files.scope` must be one of \"anywhere\", \"workspace\", not \"workspce\"; did you mean `workspace`?",
            "zareba.toml:9:2: unknown section `[runtme]`; did you mean `[runtime]`?",
        ],
    );
}

#[test]
fn mistakes_of_all_sources_are_reported_together() {
    let case = Case::new()
        .file("zareba.toml", "[shell]\ntimout = 30\n")
        .variable("SANDBOX_TIMEOUT", "soon")
        .variable("ZAREBA_SHEL_TIMEOUT", "3")
        .set("pool.native.size=many");
    assert_eq!(
        case.complaints(),
        [
            "zareba.toml:2:1: unknown key `shell.timout`; did you mean `shell.timeout`?",
            "environment variable `SANDBOX_TIMEOUT`: `shell.timeout` must be a number of seconds, not \"soon\"",
            "environment variable `ZAREBA_SHEL_TIMEOUT`: no setting has this name; did you mean `ZAREBA_SHELL_TIMEOUT`?",
            "flag `--set pool.native.size`: `pool.native.size` must be an integer from 0 to 65535, not \"many\"",
        ]
    );
}

#[test]
fn a_key_in_the_wrong_section_is_found_in_the_right_one() {
    check(
        "[runtime]\ntimeout = 3\n",
        &["zareba.toml:2:1: unknown key `runtime.timeout`; did you mean `shell.timeout`?"],
    );
    check(
        "timeout = 3\n",
        &["zareba.toml:1:1: unknown key `timeout`; did you mean `shell.timeout`?"],
    );
    check(
        "auto_lnt = true\n",
        &["zareba.toml:1:1: unknown key `auto_lnt`; did you mean `files.auto_lint`?"],
    );
}

#[test]
fn a_key_that_is_near_to_none_gets_the_list_of_its_section() {
    check(
        "[shell]\ncolour = \"red\"\n",
        &[
            "zareba.toml:2:1: unknown key `shell.colour`; valid here: `timeout`, `no_change_timeout`, `program`",
        ],
    );
}

#[test]
fn a_section_that_is_near_to_none_gets_the_list_of_sections() {
    check(
        "[wallpaper]\nkind = \"cli\"\n",
        &[
            "zareba.toml:1:2: unknown section `[wallpaper]`; valid here: `runtime`, `shell`, `files`, \
           `executor`, `local`, `native`, `pool.native`, `docker`, `pool.docker`, `server`, `sessions`, `log`, `telemetry`, `mcp`, `state`, `core`, `sandbox`, `security`, `kubernetes`, `env`",
        ],
    );
}

#[test]
fn a_section_that_is_a_plain_value_is_refused() {
    check(
        "shell = \"/bin/bash\"\nenv = 3\n",
        &[
            "zareba.toml:1:1: `shell` must be a table",
            "zareba.toml:2:1: `env` must be a table",
        ],
    );
    check(
        "[[shell]]\ntimeout = 3\n",
        &["zareba.toml:1:3: `shell` must be a table"],
    );
}

#[test]
fn numbers_out_of_their_range_are_refused() {
    check(
        "[shell]\n\
         timeout = 0\n\
         no_change_timeout = -1\n\
         [pool.native]\n\
         size = 257\n\
         [sandbox]\n\
         user_id = -1\n\
         [server]\n\
         drain = 99999999999999999999999\n\
         [sessions]\n\
         idle_timeout = nan\n",
        &[
            "zareba.toml:2:1: `shell.timeout` must be more than 0 seconds",
            "zareba.toml:3:1: `shell.no_change_timeout` must be a number of seconds, not -1",
            "zareba.toml:5:1: `pool.native.size` must be at most 256",
            "zareba.toml:7:1: `sandbox.user_id` must be an integer from 0 to 4294967295, not -1",
            "zareba.toml:9:1: `server.drain` must be a number of seconds, not inf",
            "zareba.toml:11:1: `sessions.idle_timeout` must be a number of seconds, not nan",
        ],
    );
}

#[test]
fn lists_tables_and_dates_of_the_wrong_kind_are_named() {
    check(
        "[sandbox]\n\
         additional_networks = [\"/a\", 3]\n\
         docker_runtime_kwargs = []\n\
         platform = 1979-05-27\n\
         volumes = \"/a:/b,/c\"\n",
        &[
            "zareba.toml:2:1: `sandbox.additional_networks` must be a list of strings, not a list with an integer",
            "zareba.toml:3:1: `sandbox.docker_runtime_kwargs` must be a table, not a list",
            "zareba.toml:4:1: `sandbox.platform` must be a string, not a date",
            "zareba.toml:5:1: `sandbox.volumes` has the mount \"/c\", which is not `host:container[:mode]`",
        ],
    );
}

#[test]
fn variables_for_the_sandbox_have_exportable_names_and_text() {
    check(
        "[env]\n\
         \"A-B\" = \"1\"\n\
         \"1A\" = \"1\"\n\
         \"\" = \"1\"\n\
         PORT = 8080\n\
         NUL = \"a\\u0000b\"\n",
        &[
            "zareba.toml:2:1: `env.A-B` has \"A-B\", which is no name for a variable",
            "zareba.toml:3:1: `env.1A` has \"1A\", which is no name for a variable",
            "zareba.toml:4:1: `env.` has \"\", which is no name for a variable",
            "zareba.toml:5:1: `env.PORT` must be a string, not an integer",
            "zareba.toml:6:1: `env.NUL` has a NUL character in `NUL`",
        ],
    );
}

#[test]
fn one_setting_under_two_names_in_one_file_is_a_mistake() {
    check(
        "[shell]\ntimeout = 3\n[sandbox]\ntimeout = 4\nruntime_startup_env_vars = { A = \"1\" }\n[env]\nA = \"2\"\n",
        &[
            "zareba.toml:4:1: `sandbox.timeout` sets `shell.timeout`, which line 2 has set already",
            "zareba.toml:7:1: `env.A` sets `env.A`, which line 5 has set already",
        ],
    );
}

#[test]
fn all_syntax_errors_are_reported_and_nothing_else() {
    check(
        "[shell]\ntimeout = = 3\nprogram \"x\"\ncolour = 1\n[files\n",
        &[
            "zareba.toml:2:11: extra `=`, expected nothing",
            "zareba.toml:3:9: key with no value, expected `=`",
            "zareba.toml:5:7: unclosed table, expected `]`",
        ],
    );
}

#[test]
fn a_file_of_nothing_but_mistakes_gets_a_bounded_answer() {
    let complaints = Case::new()
        .file("zareba.toml", &"[shell\n".repeat(10_000))
        .complaints();
    assert_eq!(complaints.len(), 51);
    assert_eq!(complaints[50], "and 9950 more");
    let keys: String = (0..50_000)
        .map(|number| format!("timeout{number} = 1\n"))
        .collect();
    let complaints = Case::new()
        .file("zareba.toml", &format!("[shell]\n{keys}"))
        .complaints();
    assert_eq!(complaints.len(), 51);
    assert_eq!(complaints[50], "and 49950 more");
}

#[test]
fn a_value_of_a_secret_is_not_repeated_in_a_complaint() {
    let case = Case::new().file("zareba.toml", "[executor]\nsession_api_key = 987654321\n");
    assert_eq!(
        case.complaints(),
        ["zareba.toml:2:1: `executor.session_api_key` must be a string, not an integer"]
    );
}
