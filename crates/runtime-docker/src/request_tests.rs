//! What is sent, where there is nothing here to see it by.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};
use zareba_runtime::{SandboxId, SandboxSpec};

use super::*;
use crate::EngineAddress;

const HERE: Program<'_> = Program::Here {
    file: "/host/zareba",
    door: "/host/door",
};

fn sent(change: impl FnOnce(&mut DockerOptions)) -> Value {
    sent_with(HERE, change)
}

fn sent_with(program: Program<'_>, change: impl FnOnce(&mut DockerOptions)) -> Value {
    let state = tempfile::tempdir().unwrap();
    let engine = EngineAddress::Unix("/nowhere".into());
    let state_dir = state.path().to_owned();
    let mut options = DockerOptions::hardened(engine, state_dir, "/bin/busybox".into());
    options.image = Some("image".to_owned());
    change(&mut options);
    let spec = SandboxSpec {
        id: None,
        image: None,
        workspace: None,
        environment: vec![("GIVEN".to_owned(), "it's $HOME".to_owned())],
        no_change_timeout: Duration::from_secs(30),
        timeout: Duration::from_secs(120),
        request: zareba_runtime::SandboxRequest::default(),
        on_status: None,
    };
    let plan = Plan::new(&options, &spec, SandboxId::new("one").unwrap()).unwrap();
    let image = ImageFound {
        id: "sha256:0".to_owned(),
        digests: Vec::new(),
        volumes: vec!["/data".to_owned()],
        platform: "linux/amd64".to_owned(),
    };
    let body = request(&Order {
        options: &options,
        plan: &plan,
        image: &image,
        program,
        ports: &[],
        overlays: &[],
        owner: "owner",
    });
    serde_json::to_value(body.unwrap()).unwrap()
}

#[test]
fn graphics_processors_are_asked_for_as_the_engine_wants_it() {
    let gpu = |request: GpuRequest| {
        sent(|options| options.gpu = request)["HostConfig"]["DeviceRequests"].clone()
    };
    assert_eq!(gpu(GpuRequest::None), json!([]));
    assert_eq!(
        gpu(GpuRequest::All),
        json!([{ "Count": -1, "Capabilities": [["gpu"]] }])
    );
    let ids = vec!["0".to_owned(), "GPU-x".to_owned()];
    assert_eq!(
        gpu(GpuRequest::Devices(ids)),
        json!([{ "DeviceIDs": ["0", "GPU-x"], "Capabilities": [["gpu"]] }])
    );
}

#[test]
fn the_strictest_request_has_every_wall_dk_1() {
    let body = sent(|_| {});
    let host = &body["HostConfig"];
    for (field, expected) in [
        ("Privileged", json!(false)),
        ("CapDrop", json!(["ALL"])),
        ("CapAdd", json!([])),
        ("Devices", json!([])),
        ("IpcMode", json!("private")),
        ("PidMode", json!("")),
        ("UTSMode", json!("")),
        ("UsernsMode", json!("")),
        ("CgroupnsMode", json!("private")),
        ("NetworkMode", json!("none")),
        ("ReadonlyRootfs", json!(true)),
        ("Memory", json!(2_147_483_648_u64)),
        ("MemorySwap", json!(2_147_483_648_u64)),
        ("NanoCpus", json!(2_000_000_000)),
        ("PidsLimit", json!(512)),
    ] {
        assert_eq!(host[field], expected, "{field}");
    }
    let security = host["SecurityOpt"].as_array().unwrap();
    assert_eq!(security[0], "no-new-privileges");
    assert!(security[1].as_str().unwrap().starts_with("seccomp={"));
    let log = &host["LogConfig"]["Config"];
    assert_eq!(log, &json!({ "max-size": "10m", "max-file": "2" }));
    assert!(host["Tmpfs"]["/data"].as_str().unwrap().contains("size="));
    assert!(Path::new(host["Mounts"][0]["Target"].as_str().unwrap()).is_absolute());
}

/// NS-17: whatever fills them, commands and the executor have a quarter of the memory left.
#[test]
fn places_in_memory_take_three_quarters_of_it_together_at_most() {
    for (memory, root) in [(64, false), (128, false), (2048, false), (128, true)] {
        let body = sent(|options| {
            options.usage.memory_bytes = memory << 20;
            if root {
                options.relaxed.root = RootMode::Writable;
            }
        });
        let sizes = sizes(&body["HostConfig"]);
        let sum: u64 = sizes.values().sum();
        assert!(sum <= (memory << 20) / 4 * 3, "{memory}: {sizes:?}");
        assert!(sizes.values().all(|bytes| *bytes > 0), "{sizes:?}");
        assert_eq!(sizes.contains_key("/tmp"), !root);
        assert_eq!(sizes["/workspace"], memory << 19, "half of it");
    }
    // Places that do not fit shrink alike.
    let small = sizes(&sent(|options| options.usage.memory_bytes = 128 << 20)["HostConfig"]);
    assert_eq!(small["/tmp"], small["/data"]);
    assert!(small["/dev/shm"] < small["/tmp"], "{small:?}");
}

/// An option of docker-py counts like the setting that it stands for.
#[test]
fn places_share_the_memory_that_an_option_leaves() {
    let body = sent(|options| {
        let extra = json!({ "mem_limit": "256m", "shm_size": "1g" });
        options.extra = extra.as_object().unwrap().clone();
    });
    let host = &body["HostConfig"];
    assert_eq!(host["Memory"], json!(256 << 20));
    let sum: u64 = sizes(host).values().sum();
    assert!(sum <= 192 << 20, "{sum}");
    let pages = host["ShmSize"].as_u64().unwrap() / 4096;
    assert_eq!(host["Sysctls"]["kernel.shmall"], json!(pages.to_string()));
}

/// How large the places in memory are.
fn sizes(host: &Value) -> std::collections::BTreeMap<String, u64> {
    let size = |options: &Value| {
        let options = options.as_str().unwrap().split(',');
        let mut sizes = options.filter_map(|it| it.strip_prefix("size="));
        sizes.next().unwrap().parse().unwrap()
    };
    let places = host["Tmpfs"].as_object().unwrap().iter();
    let sizes: std::collections::BTreeMap<String, u64> = places
        .map(|(path, options)| (path.clone(), size(options)))
        .collect();
    assert_eq!(host["ShmSize"], json!(sizes["/dev/shm"]));
    sizes
}

/// NS-17: an empty file takes memory, too, and 0 would be no bound.
#[test]
fn every_place_in_memory_bounds_the_number_of_its_files() {
    for memory in [8, 128, 2048] {
        let body = sent(|options| options.usage.memory_bytes = memory << 20);
        let sizes = sizes(&body["HostConfig"]);
        for (path, bytes) in sizes {
            let options = body["HostConfig"]["Tmpfs"][&path].as_str().unwrap();
            let files = format!(",nr_inodes={},", (bytes / 8192).max(16));
            assert!(options.contains(&files), "{path}: {options}");
            assert_eq!(
                options.contains(",noexec,"),
                path == "/dev/shm",
                "{options}"
            );
        }
    }
}

/// NS-17: queues and semaphores outlive the processes that made them.
#[test]
fn what_system_v_calls_make_has_a_bound() {
    let settings = |memory: u64| {
        let body = sent(|options| options.usage.memory_bytes = memory << 20);
        body["HostConfig"]["Sysctls"].clone()
    };
    for (memory, queues) in [(16, "1"), (128, "2"), (2048, "32")] {
        let settings = settings(memory);
        assert_eq!(settings["kernel.msgmni"], queues, "{memory}");
        assert_eq!(settings["kernel.sem"], "250 32000 100 128");
        assert_eq!(settings["kernel.shmmni"], "1024");
    }
}

#[test]
fn variables_of_shells_cannot_change_the_executor() {
    let body = sent(|options| {
        options.environment = vec![("LD_PRELOAD".to_owned(), "/x".to_owned())];
    });
    let variables = body["Env"].as_array().unwrap();
    assert!(variables.contains(&json!("ZAREBA_ENV_LD_PRELOAD=/x")));
    assert!(variables.contains(&json!("ZAREBA_ENV_GIVEN=it's $HOME")));
    assert!(!variables.contains(&json!("LD_PRELOAD=/x")));
    // What is the executor's own has the prefix that its shells do not inherit.
    let own = variables.iter().filter_map(Value::as_str);
    let own: Vec<&str> = own.filter(|it| !it.starts_with("ZAREBA_")).collect();
    assert_eq!(own, ["HOME=/home/agent"]);
}

#[test]
fn an_engine_elsewhere_is_told_of_no_path_of_this_machine() {
    let body = sent_with(Program::Sent { volume: "program" }, |options| {
        options.place = crate::EnginePlace::Elsewhere;
    });
    assert_eq!(body["Entrypoint"], json!(["/.zareba/program/zareba"]));
    let host = &body["HostConfig"];
    assert_eq!(
        host["Mounts"],
        json!([{
            "Type": "volume",
            "Source": "program",
            "Target": "/.zareba/program",
            "ReadOnly": true,
            "VolumeOptions": {"NoCopy": true},
        }])
    );
    let door = host["Tmpfs"]["/.zareba/door"].as_str().unwrap();
    assert!(door.contains("mode=700,uid=1000,gid=1000"), "{door}");
    assert!(!body.to_string().contains("/host/"));
}
