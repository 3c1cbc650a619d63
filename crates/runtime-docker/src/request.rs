//! What is asked of the Engine: a container that can do as little as possible (DK-1).
//!
//! Whatever decides how strong the walls are is written out, also where the Engine's default is
//! the same: `readback` compares what came of it, and a default may change.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, DeviceRequest, HostConfig, HostConfigCgroupnsModeEnum,
    HostConfigLogConfig, Mount, MountType, PortBinding, ResourcesUlimits, RestartPolicy,
    RestartPolicyNameEnum,
};
use zareba_executor::{FileScope, Linting};
use zareba_runtime::guarded::GuardedAccess;

use crate::{
    Debugging, DockerOptions, GpuRequest, NetworkChoice, RootMode, Usage, delivery,
    door::SOCKET,
    engine::ImageFound,
    extra::{self, ExtraError},
    places::{Place, Places},
    plan::{Identity, MountedSource, Plan, own_network},
    ports::Reserved,
    seccomp::{self, Permissions, SeccompError},
};

/// Places inside that are ours.
pub(crate) const PROGRAM: &str = "/.zareba/zareba";
pub(crate) const DOOR: &str = "/.zareba/door";
pub(crate) const STATE: &str = "/.zareba/state";
/// The home directory where the image's own cannot be written to.
pub(crate) const HOME: &str = "/home/agent";

/// Labels by which a container is known (DK-6).
pub(crate) const OWNER_LABEL: &str = "dev.zareba.owner";
pub(crate) const SANDBOX_LABEL: &str = "dev.zareba.sandbox";
pub(crate) const IMAGE_LABEL: &str = "dev.zareba.image";

/// The kernel counts shared memory in these.
const PAGE_BYTES: u64 = 4096;

/// What System V calls make outlives its processes, so the kernel gets nothing of it back by killing one.
/// A queue of messages takes a mebibyte: 16,384 empty ones, of 64 bytes each. All queues together may take
/// a 64th of the memory.
const QUEUE_BYTES: u64 = 1024 * 1024;
const QUEUES_PART: u64 = 64;
/// Semaphores in a set, in all sets, operations of a call, and sets: what kernels had long as the default.
/// All of them take 2 MiB.
const SEMAPHORES: &str = "250 32000 100 128";
/// Segments of shared memory, whose bytes `kernel.shmall` bounds: all of them take 2 MiB.
const SEGMENTS: &str = "1024";

/// What the executor logs is kept, but not for ever.
const LOG_BYTES_MAX: &str = "10m";
const LOG_FILES: &str = "2";

/// Files of `/proc` and `/sys` that nobody inside sees, as in the native sandbox.
pub(crate) const MASKED: [&str; 24] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/config.gz",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/modules",
    "/proc/mtrr",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/fs/selinux",
];
/// And those that nobody inside changes.
pub(crate) const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Why nothing can be asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error(transparent)]
    Seccomp(#[from] SeccompError),
    #[error(transparent)]
    Extra(#[from] ExtraError),
}

/// What a request is made of.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) options: &'a DockerOptions,
    pub(crate) plan: &'a Plan,
    pub(crate) image: &'a ImageFound,
    pub(crate) program: Program<'a>,
    pub(crate) ports: &'a [Reserved],
    /// Volumes of the Engine that hold the overlays, in the plan's order.
    pub(crate) overlays: &'a [String],
    pub(crate) owner: &'a str,
}

/// Where the Engine finds the program, and where the executor's socket goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program<'a> {
    /// On this machine, which it sees.
    Here {
        /// The static program.
        file: &'a str,
        /// The directory of the socket.
        door: &'a str,
    },
    /// In a volume of its own; the socket is where only the container sees it.
    Sent {
        /// The volume's name.
        volume: &'a str,
    },
}

impl Program<'_> {
    /// The program's path inside.
    fn path(self) -> String {
        match self {
            Self::Here { .. } => PROGRAM.to_owned(),
            Self::Sent { .. } => delivery::program_path(),
        }
    }
}

/// Writes the request.
pub(crate) fn request(order: &Order<'_>) -> Result<ContainerCreateBody, RequestError> {
    let plan = order.plan;
    let labels = [
        (OWNER_LABEL, order.owner),
        (SANDBOX_LABEL, plan.id.as_str()),
        (IMAGE_LABEL, &plan.image),
    ];
    let mut body = ContainerCreateBody {
        image: Some(plan.image.clone()),
        user: Some(format!("{}:{}", plan.user.uid, plan.user.gid)),
        env: Some(environment(order)),
        entrypoint: Some(vec![order.program.path()]),
        cmd: Some(arguments(order)),
        working_dir: Some("/".to_owned()),
        labels: Some(owned(labels)),
        // The key comes on standard input, and the word `ready` on standard output.
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        tty: Some(false),
        exposed_ports: exposed(order.ports),
        host_config: Some(host(order)?),
        ..ContainerCreateBody::default()
    };
    let shared = body.host_config.as_ref().and_then(|host| host.shm_size);
    extra::apply(&order.options.extra, &mut body)?;
    // An option for it is what `Places` was asked for: all of them share the memory.
    if let Some(host) = &mut body.host_config {
        host.shm_size = shared;
    }
    Ok(body)
}

fn host(order: &Order<'_>) -> Result<HostConfig, RequestError> {
    let options = order.options;
    let usage = &options.usage;
    let is_read_only = options.relaxed.root == RootMode::ReadOnly;
    let has_door = matches!(order.program, Program::Sent { .. });
    let places = Places::of(options, order.plan, &order.image.volumes, has_door);
    let list = |paths: &[&str]| Some(paths.iter().map(|path| (*path).to_owned()).collect());
    Ok(HostConfig {
        // Rights
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: Some(options.relaxed.capabilities.clone()),
        security_opt: Some(vec!["no-new-privileges".to_owned(), filter(order)?]),
        devices: Some(Vec::new()),
        device_requests: gpu(&options.gpu),
        masked_paths: list(&MASKED),
        readonly_paths: list(&READ_ONLY),
        // Namespaces
        ipc_mode: Some("private".to_owned()),
        pid_mode: Some(String::new()),
        uts_mode: Some(String::new()),
        userns_mode: Some(String::new()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        network_mode: Some(network_mode(order)),
        publish_all_ports: Some(false),
        port_bindings: bindings(order),
        extra_hosts: Some(options.extra_hosts.clone()),
        // Files
        readonly_rootfs: Some(is_read_only),
        tmpfs: Some(scratch(order, &places)),
        mounts: Some(mounts(order)),
        // Use
        memory: Some(signed(usage.memory_bytes)),
        memory_swap: Some(signed(usage.memory_bytes)),
        nano_cpus: Some(signed(usage.cpu_millis.saturating_mul(1_000_000))),
        pids_limit: Some(signed(usage.pids)),
        shm_size: Some(signed(places.shared_bytes)),
        sysctls: Some(bounds(options, &places)),
        ulimits: Some(ulimits(usage)),
        oom_kill_disable: Some(false),
        // Life: the executor is the init of the container, so the Engine's is not needed.
        init: Some(false),
        auto_remove: Some(false),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(owned([
                ("max-size", LOG_BYTES_MAX),
                ("max-file", LOG_FILES),
            ])),
        }),
        ..HostConfig::default()
    })
}

fn filter(order: &Order<'_>) -> Result<String, SeccompError> {
    let profile = seccomp::profile(Permissions {
        debugging: order.options.relaxed.debugging == Debugging::Allowed,
        set_id_files: !order.plan.writes_to_machine(),
    })?;
    Ok(format!("seccomp={profile}"))
}

fn network_mode(order: &Order<'_>) -> String {
    match &order.options.network {
        NetworkChoice::Nothing => "none".to_owned(),
        NetworkChoice::Own(_) => own_network(&order.plan.id),
        NetworkChoice::Named(name) => name.clone(),
        NetworkChoice::Host => "host".to_owned(),
    }
}

fn arguments(order: &Order<'_>) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "executor",
        "--unix",
        &format!("{DOOR}/{SOCKET}"),
        "--working-dir",
        &order.options.workspace_path.to_string_lossy(),
        "--state-dir",
        STATE,
        "--no-enable-browser",
        "--key-fd",
        "0",
        "--ready-fd",
        "1",
    ]
    .map(str::to_owned)
    .to_vec();
    if !order.plan.guarded.is_empty() {
        arguments.push("--hold-working-dir".to_owned());
    }
    if order.plan.user.uid == 0 {
        arguments.extend(["--username", "root"].map(str::to_owned));
    }
    arguments
}

/// What the executor itself sees beside the image's own variables. Those for its shells carry a
/// prefix that it takes off, so that none of them can change how it works.
fn environment(order: &Order<'_>) -> Vec<String> {
    let options = order.options;
    let mut environment = vec![
        // Nobody else is made or become: the Engine has chosen already. By the name that shells do
        // not inherit.
        "ZAREBA_EXECUTOR_SU_TO_USER=false".to_owned(),
        format!(
            "ZAREBA_SHELL_NO_CHANGE_TIMEOUT={}",
            order.plan.no_change_timeout.as_secs_f64()
        ),
    ];
    if options.relaxed.root == RootMode::ReadOnly {
        environment.push(format!("HOME={HOME}"));
    }
    if let Some(shell) = &options.shell {
        environment.push(format!("ZAREBA_SHELL_PROGRAM={}", shell.display()));
    }
    let scope = match options.scope {
        FileScope::WholeFilesystem => "anywhere",
        FileScope::WorkingDirectory => "workspace",
    };
    let linting = match options.linting {
        Linting::Off => "false",
        Linting::On => "true",
    };
    environment.push(format!("ZAREBA_FILES_SCOPE={scope}"));
    environment.push(format!("ZAREBA_FILES_AUTO_LINT={linting}"));
    for port in order.ports {
        if let Some(variable) = &port.variable {
            environment.push(format!("ZAREBA_ENV_{variable}={}", port.inside));
        }
    }
    let variables = order.plan.variables.iter();
    environment.extend(variables.map(|(name, value)| format!("ZAREBA_ENV_{name}={value}")));
    environment
}

/// Places that can be written to, each with a bound.
fn scratch(order: &Order<'_>, places: &Places) -> HashMap<String, String> {
    let Identity { uid, gid } = order.plan.user;
    let options = |place: &Place| {
        let Place { bytes, mode, .. } = place;
        let (files, exec) = (
            place.files(),
            if place.has_programs() {
                "exec"
            } else {
                "noexec"
            },
        );
        format!(
            "rw,nosuid,nodev,{exec},size={bytes},nr_inodes={files},mode={mode},uid={uid},gid={gid}"
        )
    };
    let places = places.mounted.iter();
    places
        .map(|place| (place.path.clone(), options(place)))
        .collect()
}

/// Of what outlives the processes that made it.
fn bounds(options: &DockerOptions, places: &Places) -> HashMap<String, String> {
    let shared_pages = places.shared_bytes / PAGE_BYTES;
    let memory = extra::bytes(&options.extra, "mem_limit").unwrap_or(options.usage.memory_bytes);
    let queues = (memory / QUEUES_PART / QUEUE_BYTES).max(1);
    owned([
        ("kernel.shmall", &shared_pages.to_string()),
        ("kernel.shmmni", SEGMENTS),
        ("kernel.msgmni", &queues.to_string()),
        ("kernel.sem", SEMAPHORES),
    ])
}

fn mounts(order: &Order<'_>) -> Vec<Mount> {
    let mount = |typ, source: &str, target: &str, read_only| Mount {
        typ: Some(typ),
        source: Some(source.to_owned()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        ..Mount::default()
    };
    let mut mounts = match order.program {
        Program::Here { file, door } => vec![
            mount(MountType::BIND, file, PROGRAM, true),
            mount(MountType::BIND, door, DOOR, false),
        ],
        Program::Sent { volume } => vec![Mount {
            volume_options: Some(delivery::only_ours()),
            ..mount(MountType::VOLUME, volume, delivery::DIRECTORY, true)
        }],
    };
    if let Some(workspace) = &order.plan.workspace {
        let target = order.options.workspace_path.to_string_lossy();
        let source = workspace.to_string_lossy();
        mounts.push(mount(MountType::BIND, &source, &target, false));
        // Over themselves, so that none of them can be changed or moved away.
        for path in &order.plan.guarded {
            let source = workspace.join(&path.below);
            let target = order.options.workspace_path.join(&path.below);
            let (source, target) = (source.to_string_lossy(), target.to_string_lossy());
            let is_read_only = path.access == GuardedAccess::ReadOnly;
            mounts.push(mount(MountType::BIND, &source, &target, is_read_only));
        }
    }
    let mut overlays = order.overlays.iter();
    for volume in &order.plan.volumes {
        let target = volume.target.to_string_lossy();
        let (typ, source) = match &volume.source {
            MountedSource::Host(path) => (MountType::BIND, path.to_string_lossy().into_owned()),
            MountedSource::Named(name) => (MountType::VOLUME, name.clone()),
            MountedSource::Overlay { .. } => (
                MountType::VOLUME,
                overlays.next().cloned().unwrap_or_default(),
            ),
        };
        mounts.push(mount(typ, &source, &target, volume.read_only));
    }
    mounts
}

fn ulimits(usage: &Usage) -> Vec<ResourcesUlimits> {
    let mut limits: Vec<ResourcesUlimits> = Vec::new();
    for limit in &usage.ulimits {
        limits.retain(|other| other.name.as_ref() != Some(&limit.name));
        limits.push(ResourcesUlimits {
            name: Some(limit.name.clone()),
            soft: Some(limit.soft),
            hard: Some(limit.hard),
        });
    }
    limits
}

fn gpu(request: &GpuRequest) -> Option<Vec<DeviceRequest>> {
    let (count, device_ids) = match request {
        GpuRequest::None => return Some(Vec::new()),
        GpuRequest::All => (Some(-1), None),
        GpuRequest::Devices(ids) => (None, Some(ids.clone())),
    };
    Some(vec![DeviceRequest {
        count,
        device_ids,
        capabilities: Some(vec![vec!["gpu".to_owned()]]),
        ..DeviceRequest::default()
    }])
}

fn exposed(ports: &[Reserved]) -> Option<Vec<String>> {
    (!ports.is_empty()).then(|| ports.iter().map(port_key).collect())
}

fn bindings(order: &Order<'_>) -> Option<HashMap<String, Option<Vec<PortBinding>>>> {
    let binding = |port: &Reserved| PortBinding {
        host_ip: Some(order.options.bind_address.to_string()),
        host_port: Some(
            port.outside
                .map_or_else(String::new, |port| port.to_string()),
        ),
    };
    let bindings = order.ports.iter();
    let bindings = bindings.map(|port| (port_key(port), Some(vec![binding(port)])));
    Some(bindings.collect())
}

fn port_key(port: &Reserved) -> String {
    format!("{}/tcp", port.inside)
}

/// A map as the Engine's types have it.
pub(crate) fn owned<const N: usize>(pairs: [(&str, &str); N]) -> HashMap<String, String> {
    let pairs = pairs.into_iter();
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// The Engine counts with signs.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
