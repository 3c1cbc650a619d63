//! The section of the `docker` runtime.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::native::usual_guarded_names;
use super::rules;
use crate::key::section;
use crate::setting::{Processors, Size, choice};
use crate::value::Value;

choice! {
    /// What becomes of an image that the Docker Engine does not have.
    ImagePull {
        /// There is no sandbox.
        Never = "never",
        /// The Engine fetches it.
        Missing = "missing",
    }
}

section! {
    /// Sandboxes of the `docker` runtime that are kept ready.
    DockerPoolSettings at pool.docker named "pool.docker" {
        /// The number of sandboxes with `docker.image` that are started ahead for new sessions.
        size: u16 = 0, check rules::pool;
    }
}

section! {
    /// The `docker` runtime.
    DockerSettings at docker named "docker" {
        /// Where the Docker Engine is, as `unix:///PATH`, `tcp://HOST:PORT` or `ssh://USER@HOST`.
        /// Unset means where the docker command would find it.
        engine: Option<String> = None, env "DOCKER_HOST";
        /// Whether the Engine is on another machine, so that directories of this one cannot be
        /// mounted. Unset means yes, except for a Unix socket.
        remote: Option<bool> = None;
        /// The static `zareba` program that runs in every container. Unset means the running program.
        program: Option<PathBuf> = None;
        /// The image of sandboxes that name none.
        image: Option<String> = None;
        /// What to do if the Engine does not have the image: fail (`never`) or fetch it (`missing`).
        pull: ImagePull = ImagePull::Never;
        /// The platform of images, such as `linux/amd64`. Unset means the Engine's own.
        platform: Option<String> = None;
        /// The user inside, by number. Unset means the owner of the workspace, and never root.
        user_id: Option<u32> = None;
        /// The group inside, by number. Unset means the number of `docker.user_id`.
        group_id: Option<u32> = None;
        /// Change the owner of a workspace that the user inside cannot write to.
        give_workspace: bool = false;
        /// Names in a workspace that a sandbox can neither make nor change, because programs of this machine
        /// act on them. A missing one is an empty directory while the sandbox runs.
        guarded_names: Vec<String> = usual_guarded_names(), check rules::guarded_names;
        /// Directories to mount beside the workspace, as `host:container[:mode]` with the mode `ro`,
        /// `rw` or `overlay`.
        volumes: Vec<String> = Vec::new();
        /// The directory for changes of volumes with the mode `overlay`, which are refused without
        /// it.
        overlays: Option<PathBuf> = None;
        /// What can be reached: `none`, `machine` (what listens on all addresses of this machine),
        /// `internet` (everything), `host` (this machine's own network) or a network of the Engine
        /// by its name.
        network: String = "none".to_owned(), check rules::network_name;
        /// More networks of the Engine to join.
        additional_networks: Vec<String> = Vec::new();
        /// Names of hosts with their addresses, as `name:address`.
        extra_hosts: Vec<String> = Vec::new();
        /// Ports to publish: `80` (on any free port), `8080:80` (8080 outside, 80 inside) or
        /// `40000-49999` (a free port, the same on both sides). `NAME=` in front sets that variable
        /// inside to the port.
        ports: Vec<String> = Vec::new();
        /// The address that ports are published on.
        bind_address: String = "127.0.0.1".to_owned();
        /// The memory that a sandbox may use, including its files in memory.
        memory: Size = Size::gibibytes(2), check rules::memory;
        /// The number of processes and threads that a sandbox may have.
        pids: u32 = 512, check rules::pids;
        /// The number of processors that a sandbox may keep busy; fractions are allowed.
        cpus: Processors = Processors::whole(2), check rules::processors;
        /// The size of files in an empty workspace, which is in memory.
        disk: Size = Size::gibibytes(1), check rules::disk;
        /// Graphics processors: `all`, or ids separated by commas.
        gpus: Option<String> = None;
        /// Allow changes to the image's own files. Their size has no limit.
        writable_root: bool = false;
        /// Capabilities to keep, such as `NET_BIND_SERVICE`.
        capabilities: Vec<String> = Vec::new();
        /// Allow debuggers to inspect other processes of the sandbox.
        debuggers: bool = false;
        /// More options of the Engine, by the names of docker-py. Options that weaken the isolation
        /// are refused.
        options: Option<BTreeMap<String, Value>> = None;
        /// Images that sandboxes may have, with `*` for any characters. Unset means all for commands,
        /// and for sessions of a server `docker.image` alone.
        allowed_images: Option<Vec<String>> = None;
        /// Allow clients of a server to build images, under names in `docker.allowed_images`. Steps of
        /// a build run as root in ordinary containers of the Engine, without the isolation of
        /// sandboxes, and other clients may use what one client builds.
        build: bool = false;
        /// Directories of this machine that may be mounted, and those below them. Unset means all
        /// except those that are never mounted.
        allowed_mounts: Option<Vec<String>> = None;
    }
}
