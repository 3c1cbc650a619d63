//! The section of the `docker` runtime.

use std::collections::BTreeMap;
use std::path::PathBuf;

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
        /// How many sandboxes with `docker.image` are kept started for sessions to come.
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
        /// mounted. Unset means that it is unless it is reached by a Unix socket.
        remote: Option<bool> = None;
        /// A static `zareba`, which runs in every container. Unset means this very program.
        program: Option<PathBuf> = None;
        /// The image of sandboxes that name none.
        image: Option<String> = None;
        /// What becomes of an image that the Engine does not have: there is no sandbox, or it is
        /// fetched.
        pull: ImagePull = ImagePull::Never;
        /// The platform of images, such as `linux/amd64`. Unset means the Engine's own.
        platform: Option<String> = None;
        /// The user inside, by number. Unset means the owner of the workspace, and never root.
        user_id: Option<u32> = None;
        /// The group inside, by number. Unset means the number of `docker.user_id`.
        group_id: Option<u32> = None;
        /// Give a workspace that the user inside cannot write to to that user.
        give_workspace: bool = false;
        /// What is mounted beside the workspace, as `host:container[:mode]` with the mode `ro`, `rw`
        /// or `overlay`.
        volumes: Vec<String> = Vec::new();
        /// Where the changes of volumes with the mode `overlay` are kept. Without it they are
        /// refused.
        overlays: Option<PathBuf> = None;
        /// What can be reached: `none`, `machine` (what listens on all addresses of this machine),
        /// `internet` (everything), `host` (this machine's own network) or a network of the Engine
        /// by its name.
        network: String = "none".to_owned(), check rules::network_name;
        /// Networks of the Engine that are joined beside it.
        additional_networks: Vec<String> = Vec::new();
        /// Names with an address of their own, as `name:address`.
        extra_hosts: Vec<String> = Vec::new();
        /// Ports that are published: `80` (on any free one), `8080:80` (this one outside, that one
        /// inside) or `40000-49999` (a free one, the same on both sides). `NAME=` in front tells it
        /// inside by that variable.
        ports: Vec<String> = Vec::new();
        /// The address on which they are published.
        bind_address: String = "127.0.0.1".to_owned();
        /// The memory that a sandbox may use, with its files that lie in memory.
        memory: Size = Size::gibibytes(2), check rules::memory;
        /// How many processes and threads it may have.
        pids: u32 = 512, check rules::pids;
        /// How many processors it may keep busy; fractions are allowed.
        cpus: Processors = Processors::whole(2), check rules::processors;
        /// What the files in an empty workspace may take; they lie in memory.
        disk: Size = Size::gibibytes(1), check rules::disk;
        /// Graphics processors: `all`, or ids with commas between.
        gpus: Option<String> = None;
        /// Let the image's own files be changed inside. What is written then has no bound.
        writable_root: bool = false;
        /// Capabilities that are left, such as `NET_BIND_SERVICE`.
        capabilities: Vec<String> = Vec::new();
        /// Let debuggers look into other processes of the sandbox.
        debuggers: bool = false;
        /// More options of the Engine, by the names of docker-py. Those that could open a wall are
        /// refused.
        options: Option<BTreeMap<String, Value>> = None;
        /// Images that sandboxes may have, with `*` for any characters. Unset means all for commands,
        /// and for sessions of a server `docker.image` alone.
        allowed_images: Option<Vec<String>> = None;
        /// Let clients of a server have images built, under names that `docker.allowed_images` has.
        /// Steps of a build run as root in ordinary containers of the Engine, without the walls of
        /// sandboxes, and what one client builds others may use.
        build: bool = false;
        /// Directories of this machine that may be mounted, with all that is below them. Unset means
        /// all but those that never are.
        allowed_mounts: Option<Vec<String>> = None;
    }
}
