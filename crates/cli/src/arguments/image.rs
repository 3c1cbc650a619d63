//! `zareba image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Work with images
#[derive(Args, Debug)]
pub(crate) struct ImageArguments {
    #[command(subcommand)]
    pub(crate) command: ImageCommand,
}

/// What can be done with images.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// List images
    #[command(after_help = "Example:
  zareba image ls -o json")]
    Ls,
    /// Take an image from a file or a directory
    #[command(after_help = "\
Takes what `docker save` writes, an OCI image layout, or a root file system, each as a directory or
an archive, compressed or not. Nothing in it is run.

Example:
  docker save debian:12 | gzip > debian.tar.gz
  zareba image import debian.tar.gz")]
    Import {
        /// What it is called [default: what it calls itself]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The file or directory
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
    /// Take an image from a registry
    #[command(after_help = "\
Credentials come from `config.json` in $DOCKER_CONFIG or ~/.docker, and a proxy from $HTTPS_PROXY.

Example:
  zareba image pull debian:12")]
    Pull {
        /// Speak to the registry in the clear
        #[arg(long)]
        plain_http: bool,
        /// The image, such as debian:12 or ghcr.io/owner/name@sha256:…
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make an image of the Docker Engine that an unmodified OpenHands starts as its own
    #[command(after_help = "\
Our executor stands where OpenHands looks for its server. Nothing is run for that, and nothing is
fetched but a missing base image, where `docker.pull` allows it. The base image needs a shell.

Example:
  zareba image openhands debian:12 my/openhands
  export SANDBOX_RUNTIME_CONTAINER_IMAGE=my/openhands")]
    Openhands {
        /// The image that it is made from, one of the Engine
        #[arg(value_name = "BASE")]
        base: String,
        /// What it is called
        #[arg(value_name = "TAG", default_value = "zareba/openhands")]
        tag: String,
    },
    /// Remove images
    #[command(after_help = "\
A name goes, and with its last name the image; an id takes all names with it. Images that sandboxes
use are refused.

Example:
  zareba image rm debian:12")]
    Rm {
        /// Names, or the beginnings of ids
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}
