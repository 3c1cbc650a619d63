//! Runs the executor in a container of a Docker Engine.
//!
//! No image is built for that. The static `zareba` program is mounted into the user's own image
//! and is the container's first process; a Unix socket in a directory that both sides see is the
//! way in. To an Engine on another machine the program is sent once (`delivery`), and the way in
//! is a stream through the Engine itself (`relay`). [`DockerOptions`] is what an operator decides,
//! [`DockerRuntime`] makes sandboxes of it.
//!
//! The way of a new sandbox: `plan` decides, `image` finds the image, `request` writes down what
//! is asked of the `engine`, `readback` compares what came of it, `wake` starts it, asks the
//! `kernel` what holds it and waits for the executor behind the `door`; `make` is the order of all
//! that. Then `keep` owns it, told by the `watcher` of what happens to it, until `remains` are
//! removed. `found` is for sandboxes that were made earlier, `warm` for those that are made ahead,
//! `monitor` for those who look, `groups` counts the limits that were met, and `openhands` makes images for somebody else's runtime.
#![deny(missing_docs)]

mod options;
mod volumes;

mod build;
mod docker;
mod found;
mod make;
mod monitor;
mod openhands;
mod sandbox;
mod warm;

mod extra;
mod image;
mod pin;
mod places;
mod plan;
mod podman;
mod ports;
mod program;
mod readback;
mod request;
mod seccomp;

mod delivery;
mod door;
mod ending;
mod engine;
mod groups;
mod kernel;
mod relay;
mod wake;
mod watcher;

mod apt;
mod archive;
mod asked;
mod copy;
mod directory;
mod keep;
mod record;
mod remains;

pub use build::{
    BuildError, BuildEvent, BuildListener, BuildManner, BuildOrder, BuildSource, BuilderChoice,
    BuiltFrom, BuiltImage, ContextLimits, ImageBuilder, ImageSummary, PruneOrder, Pruned, Recipe,
    RecipeFiles, RecipeNames, Reuse, StepState, as_statuses,
};
pub use docker::DockerRuntime;
pub use ending::ExitReason;
pub use engine::{
    AddressError, EngineAddress, EngineError, EngineFault, EnginePlace, EngineSources, SshHost,
    TlsFiles,
};
pub use monitor::{EngineReport, LogMode, LogPiece, LogQuery, LogStream, Logs, Measured};
pub use options::{
    Allowed, Debugging, DockerOptions, GpuRequest, Lifetime, NetworkChoice, PortChoice,
    PortRequest, PullPolicy, Reach, Relaxed, RootMode, SandboxUser, Ulimit, Usage, Warm,
    WorkspaceOwnership,
};
pub use volumes::{VolumeError, VolumeMode, VolumeRequest, VolumeSource};
