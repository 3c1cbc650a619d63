//! OpenHands' own `config.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zareba_config::openhands::OpenHandsSettings;
use zareba_config::{
    FileSettings, LeftOutReason, McpRemote, McpSettings, RuntimeKind, RuntimeSettings, Settings,
    ShellSettings, Value,
};

use crate::case::Case;

const CONFIG: &str = include_str!("../fixtures/openhands.toml");

#[test]
fn a_file_of_openhands_is_read_with_its_own_names() {
    let mut openhands = OpenHandsSettings::default();
    openhands.sandbox.runtime_container_image = Some("registry.example/runtime:1".to_owned());
    openhands.sandbox.docker_runtime_kwargs = Some(BTreeMap::from([
        ("cpu_count".to_owned(), Value::Integer(2)),
        ("mem_limit".to_owned(), Value::Text("2g".to_owned())),
    ]));
    openhands.sandbox.additional_networks = vec!["tools".to_owned()];
    let case = Case::new().file("config.toml", CONFIG);
    let configuration = case.load();
    let left_out: Vec<(&str, LeftOutReason)> = configuration
        .left_out
        .iter()
        .map(|it| (it.written_as.as_str(), it.reason))
        .collect();
    let absent = [
        "sandbox.keep_runtime_alive",
        "sandbox.local_runtime_url",
        "sandbox.runtime_extra_build_args",
        "sandbox.vscode_port",
        "sandbox.remote_runtime_class",
        "kubernetes.namespace",
        "kubernetes.privileged",
    ];
    assert_eq!(
        left_out,
        absent.map(|key| (key, LeftOutReason::NotInThisVersion))
    );
    let settings = configuration.settings;
    let expected = Settings {
        runtime: RuntimeSettings {
            kind: RuntimeKind::Local,
            image: None,
            workspace: Some(PathBuf::from("./project")),
            workspace_in_sandbox: PathBuf::from("/work"),
            ..RuntimeSettings::default()
        },
        shell: ShellSettings {
            timeout: Duration::from_secs(300),
            ..ShellSettings::default()
        },
        files: FileSettings {
            auto_lint: true,
            ..FileSettings::default()
        },
        mcp: McpSettings {
            sse_servers: vec![McpRemote {
                url: "http://localhost:8080/sse".to_owned(),
                api_key: None,
                timeout: None,
            }],
            ..McpSettings::default()
        },
        env: settings.env.clone(),
        openhands,
        ..Settings::default()
    };
    assert_eq!(settings, expected);
    let env: Vec<(&str, &str)> = settings.env.iter().collect();
    assert_eq!(env, [("LANG", "C.UTF-8"), ("TOKEN", "t")]);
    assert_eq!(case.origin("shell.timeout"), "config.toml:25");
    assert_eq!(case.origin("env.LANG"), "config.toml:31");
}

#[test]
fn defaults_are_those_of_openhands() {
    let settings = Settings::default();
    let sandbox = &settings.openhands.sandbox;
    assert_eq!(settings.shell.timeout.as_secs(), 120);
    assert_eq!(settings.shell.no_change_timeout.as_secs(), 10);
    assert_eq!(
        settings.runtime.workspace_in_sandbox,
        Path::new("/workspace")
    );
    assert_eq!(
        sandbox.remote_runtime_api_url.as_deref(),
        Some("http://localhost:8000")
    );
    assert_eq!(
        sandbox.base_container_image.as_deref(),
        Some("nikolaik/python-nodejs:python3.12-nodejs22")
    );
    assert_eq!(sandbox.close_delay.as_secs(), 3600);
    assert_eq!(settings.openhands.kubernetes.resource_memory_limit, "2Gi");
}

#[test]
fn unknown_keys_in_the_sections_that_a_runtime_reads_are_mistakes() {
    let case = Case::new().file(
        "config.toml",
        "[core]\nruntme = \"cli\"\n[sandbox]\ntime_out = 3\n[security]\nenable_security_analyzer = true\n\
         [kubernetes]\nnamespaces = \"x\"\n[sandbx]\n",
    );
    assert_eq!(
        case.complaints(),
        [
            "config.toml:2:1: unknown key `core.runtme`; did you mean `core.runtime`?",
            "config.toml:4:1: unknown key `sandbox.time_out`; did you mean `sandbox.timeout`?",
            "config.toml:6:1: unknown key `security.enable_security_analyzer`; did you mean `security.security_analyzer`?",
            "config.toml:8:1: unknown key `kubernetes.namespaces`; did you mean `kubernetes.namespace`?",
            "config.toml:9:2: unknown section `[sandbx]`; did you mean `[sandbox]`?",
        ]
    );
}

#[test]
fn values_of_the_sections_that_a_runtime_does_not_read_are_not_checked() {
    let text = "[core]\nmax_iterations = 3\njwt_secret = 3\nmax_budget_per_task = \"x\"\n[llm]\nmodel = 3\n[llm.a.b]\nc = []\n\
                [llm_old]\nx = 1\n[agent.X]\ny = 2\n";
    let configuration = Case::new().file("config.toml", text).load();
    assert_eq!(configuration.settings, Settings::default());
    assert_eq!(configuration.left_out, []);
}

#[test]
fn a_runtime_that_openhands_names_by_its_class_is_none_of_ours() {
    let text = "[core]\nruntime = \"zareba.openhands.ZarebaRuntime\"\n";
    for case in [Case::new(), Case::new().untrusted()] {
        let configuration = case.file("config.toml", text).load();
        assert_eq!(configuration.settings, Settings::default());
        assert_eq!(configuration.left_out.len(), 1);
        assert_eq!(
            configuration.left_out[0].reason,
            LeftOutReason::NotInThisVersion
        );
    }
}

#[test]
fn keys_of_openhands_own_application_do_not_belong_into_our_file() {
    let case = Case::new().file("zareba.toml", "[core]\nmax_iterations = 3\n");
    assert_eq!(
        case.complaints(),
        [
            "zareba.toml:2:1: `core.max_iterations` is for OpenHands' own application, and for its \
             `config.toml`"
        ]
    );
}

#[test]
fn a_confirmation_mode_that_does_not_exist_is_refused_in_their_file_too() {
    let text = "[core]\n[security]\nconfirmation_mode = true\nsecurity_analyzer = \"llm\"\n";
    for case in [Case::new(), Case::new().untrusted()] {
        assert_eq!(
            case.file("config.toml", text).complaints(),
            [
                "config.toml:3:1: `security.confirmation_mode` is not in this version: actions run \
                 without being confirmed here; the client has to ask",
                "config.toml:4:1: `security.security_analyzer` is not in this version: actions are not \
                 analysed here; the client has to do it",
            ]
        );
    }
    let off = "[core]\n[security]\nconfirmation_mode = false\n";
    assert_eq!(
        Case::new().file("config.toml", off).load().settings,
        Settings::default()
    );
}

#[test]
fn both_vocabularies_may_stand_in_one_file() {
    let text = "[files]\nscope = \"workspace\"\n[sandbox]\nenable_auto_lint = true\n";
    let files = Case::new().file("zareba.toml", text).load().settings.files;
    assert_eq!((files.scope.as_str(), files.auto_lint), ("workspace", true));
}

#[test]
fn a_runtime_of_openhands_that_we_also_have_by_name_can_be_overridden() {
    let case = Case::new().file("config.toml", "[core]\nruntime = \"docker\"\n");
    assert_eq!(case.load().settings.runtime.kind, RuntimeKind::Docker);
    let case = case.flag("--runtime", "runtime.kind", "cli");
    assert_eq!(case.load().settings.runtime.kind, RuntimeKind::Cli);
}
