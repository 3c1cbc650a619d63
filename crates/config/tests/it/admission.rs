//! What an untrusted project file may set.

use zareba_config::{LeftOutReason, RuntimeKind, Settings, keys};

use crate::case::Case;

/// All of it. A key that is not here must not weaken anything from inside a repository.
#[test]
fn these_are_all_the_keys_that_an_untrusted_project_may_set() {
    let allowed: Vec<&str> = keys()
        .iter()
        .filter(|key| key.project.is_some())
        .map(|key| key.path)
        .collect();
    assert_eq!(
        allowed,
        [
            "runtime.image",
            "runtime.workspace_in_sandbox",
            "shell.timeout",
            "shell.no_change_timeout",
            "files.auto_lint",
            "sandbox.base_container_image",
            "sandbox.runtime_container_image",
        ]
    );
}

#[test]
fn every_other_key_is_refused_in_our_file_and_left_out_of_openhands() {
    for key in keys().iter().filter(|key| key.project.is_none()) {
        let (section, name) = key.path.rsplit_once('.').unwrap();
        let text = format!("[{section}]\n{name} = \"anything\"\n");
        let complaints = Case::new()
            .untrusted()
            .file("zareba.toml", &text)
            .complaints();
        let expected = match key.absent {
            None => format!(
                "`{}` may be set by a project file only when you have trusted it; run `zareba trust zareba.toml`",
                key.path
            ),
            Some(instead) => format!("`{}` is not in this version: {instead}", key.path),
        };
        assert_eq!(complaints, [format!("zareba.toml:2:1: {expected}")]);
        if section == "security" {
            continue;
        }
        let text = format!("[core]\n{}", text.replace("[core]", ""));
        let configuration = Case::new().untrusted().file("config.toml", &text).load();
        assert_eq!(configuration.settings, Settings::default(), "{}", key.path);
        let left_out: Vec<(&str, LeftOutReason)> = configuration
            .left_out
            .iter()
            .map(|it| (it.key.as_str(), it.reason))
            .collect();
        let reason = match key.absent {
            None => LeftOutReason::Untrusted,
            Some(_) => LeftOutReason::NotInThisVersion,
        };
        assert_eq!(left_out, [(key.path, reason)]);
    }
}

#[test]
fn what_it_may_say_counts() {
    let text = "[runtime]\nimage = \"debian:12\"\nworkspace_in_sandbox = \"/src\"\n\
                [shell]\ntimeout = 7\nno_change_timeout = 3\n[files]\nauto_lint = true\n\
                [env]\nLANG = \"C\"\n";
    let untrusted = Case::new().untrusted().file("zareba.toml", text).load();
    assert_eq!(
        untrusted.settings,
        Case::new().file("zareba.toml", text).load().settings
    );
    assert_eq!(untrusted.settings.env.get("LANG"), Some("C"));
    assert!(!untrusted.files[0].is_trusted);
}

#[test]
fn all_that_it_may_not_say_is_told_at_once_with_its_line_and_the_way_on() {
    let text = "[runtime]\nkind = \"local\"\nimage = \"debian:12\"\n\
                [[mcp.stdio_servers]]\nname = \"x\"\ncommand = \"sh\"\nargs = [\"-c\", \"id>PWNED\"]\n";
    let case = Case::new().untrusted().file("zareba.toml", text);
    assert_eq!(
        case.relative(&case.complaints().join("\n")),
        "zareba.toml:2:1: `runtime.kind` may be set by a project file only when you have trusted it; \
         run `zareba trust zareba.toml`\n\
         zareba.toml:4:7: `mcp.stdio_servers` may be set by a project file only when you have trusted \
         it; run `zareba trust zareba.toml`"
    );
}

/// There `PATH` and `LD_PRELOAD` choose what runs on this machine.
#[test]
fn variables_of_an_untrusted_project_are_not_for_runtimes_without_walls() {
    let ours = "[env]\nLD_PRELOAD = \"./evil.so\"\n";
    let theirs = "[core]\n[sandbox]\nruntime_startup_env_vars = { LD_PRELOAD = \"./evil.so\" }\n";
    for kind in ["cli", "local"] {
        let flag = format!("runtime.kind={kind}");
        let case = Case::new().untrusted().file("zareba.toml", ours).set(&flag);
        assert_eq!(
            case.complaints(),
            [format!(
                "zareba.toml:2:1: `env.LD_PRELOAD` may be set by a project file only when you have \
                 trusted it, because the runtime `{kind}` does not isolate; run `zareba trust zareba.toml`"
            )]
        );
        let case = Case::new()
            .untrusted()
            .file(
                "case-home/.config/zareba/zareba.toml",
                "env.LD_PRELOAD = \"mine.so\"",
            )
            .file("config.toml", theirs)
            .set(&flag);
        let configuration = case.load();
        assert_eq!(
            configuration.settings.env.get("LD_PRELOAD"),
            Some("mine.so")
        );
        assert_eq!(
            configuration.left_out.len(),
            1,
            "{:?}",
            configuration.left_out
        );
        let stronger = Case::new()
            .untrusted()
            .file("zareba.toml", ours)
            .set(&flag)
            .set("env.LD_PRELOAD=mine.so");
        assert_eq!(
            stronger.load().settings.env.get("LD_PRELOAD"),
            Some("mine.so")
        );
    }
    let native = Case::new().untrusted().file("zareba.toml", ours).load();
    assert_eq!(native.settings.env.get("LD_PRELOAD"), Some("./evil.so"));
}

#[test]
fn a_file_that_is_only_looked_at_is_not_followed() {
    let text = "[runtime]\nkind = \"local\"\n[shell]\ntimeout = 7\n";
    let case = Case::new()
        .untrusted()
        .leaving_out()
        .file("zareba.toml", text);
    let configuration = case.load();
    assert_eq!(configuration.settings.runtime.kind, RuntimeKind::Native);
    let rows = configuration.table();
    let row = rows.iter().find(|row| row.key == "runtime.kind").unwrap();
    let left_out: Vec<(String, String)> = row
        .left_out
        .iter()
        .map(|it| {
            (
                case.relative(&it.origin.to_string()),
                it.value.clone().unwrap().to_string(),
            )
        })
        .collect();
    assert_eq!(
        left_out,
        [("zareba.toml:2".to_owned(), "\"local\"".to_owned())]
    );
}

#[test]
fn a_key_that_is_not_in_this_version_is_refused_wherever_it_is_set_in_our_words() {
    for key in keys().iter().filter_map(|key| Some((key, key.absent?))) {
        let (key, instead) = key;
        let complaint = format!("`{}` is not in this version: {instead}", key.path);
        let flag = Case::new().set(&format!("{}=1", key.path));
        assert_eq!(
            flag.complaints(),
            [format!("flag `--set {}`: {complaint}", key.path)]
        );
        let name = key.variables.last().unwrap();
        let variable = Case::new().variable(name, "1");
        assert_eq!(
            variable.complaints(),
            [format!("environment variable `{name}`: {complaint}")]
        );
        let (section, last) = key.path.rsplit_once('.').unwrap();
        let file = Case::new().file("zareba.toml", &format!("[{section}]\n{last} = 1\n"));
        assert_eq!(file.complaints(), [format!("zareba.toml:2:1: {complaint}")]);
    }
}
