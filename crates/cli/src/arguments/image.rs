//! `zareba image`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
    /// Import an image from a file or a directory
    #[command(after_help = "\
Takes what `docker save` writes, an OCI image layout, or a root file system, each as a directory or
an archive, compressed or not. Nothing in it is run.

Example:
  docker save debian:12 | gzip > debian.tar.gz
  zareba image import debian.tar.gz")]
    Import {
        /// The image's name [default: the one that it names itself]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The file or directory
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
    /// Pull an image from a registry
    #[command(after_help = "\
Credentials come from `config.json` in $DOCKER_CONFIG or ~/.docker, and a proxy from $HTTPS_PROXY.

Example:
  zareba image pull debian:12")]
    Pull {
        /// Use HTTP without TLS
        #[arg(long)]
        plain_http: bool,
        /// The image, such as debian:12 or ghcr.io/owner/name@sha256:…
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make an image on the Docker Engine that an unmodified OpenHands starts
    #[command(after_help = "\
Puts the executor where OpenHands looks for its server. Runs nothing, and fetches only a missing
base image, if `docker.pull` allows it. The base image needs a shell.

Example:
  zareba image openhands debian:12 my/openhands
  export SANDBOX_RUNTIME_CONTAINER_IMAGE=my/openhands")]
    Openhands {
        /// The image of the Engine to begin with
        #[arg(value_name = "BASE")]
        base: String,
        /// The name of the new image
        #[arg(value_name = "TAG", default_value = "zareba/openhands")]
        tag: String,
    },
    /// Build an image on the Docker Engine
    #[command(after_help = "\
Builds from a Dockerfile and the files beside it, or with --base from an image and additions to it.
An image of --base is named by its content, and an earlier build of the same is used again. No image
has to be built to start a sandbox.

Steps reach no network without --network.

Examples:
  zareba image build --tag my/tools .
  zareba image build --base debian:12 --apt git,jq --run 'pip install ruff' --network internet")]
    Build(BuildArguments),
    /// Remove the Docker Engine's cache of builds
    #[command(after_help = "Example:
  zareba image prune --builder --keep 2G")]
    Prune(PruneArguments),
    /// Remove images
    #[command(after_help = "\
Removes a name, and the image with its last name; an id removes all its names. Refuses images that
sandboxes use.

Example:
  zareba image rm debian:12")]
    Rm {
        /// Names, or the beginnings of ids
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

/// What is built, and how.
#[derive(Args, Debug)]
pub(crate) struct BuildArguments {
    /// The image's name; may be repeated. With --base only once, without a tag
    #[arg(short, long = "tag", value_name = "NAME")]
    pub(crate) tags: Vec<String>,
    /// The Dockerfile [default: the one in the directory]
    #[arg(short, long, value_name = "PATH", conflicts_with = "base")]
    pub(crate) file: Option<PathBuf>,
    /// Set an argument of the Dockerfile; may be repeated
    #[arg(long = "build-arg", value_name = "NAME=VALUE", conflicts_with = "base")]
    pub(crate) arguments: Vec<String>,
    /// Begin with this image, instead of a Dockerfile
    #[arg(long, value_name = "IMAGE")]
    pub(crate) base: Option<String>,
    /// Install these packages with apt-get
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',', requires = "base")]
    pub(crate) apt: Vec<String>,
    /// Run this command in the image; may be repeated
    #[arg(long = "run", value_name = "COMMAND", requires = "base")]
    pub(crate) commands: Vec<String>,
    /// Copy the files of a directory into the image
    #[arg(long, value_name = "DIRECTORY:PATH", requires = "base")]
    pub(crate) copy: Option<String>,
    /// Build for this platform, such as linux/arm64
    #[arg(long, value_name = "PLATFORM")]
    pub(crate) platform: Option<String>,
    /// What steps can reach: none, internet, host, or a network of the Engine
    #[arg(long, value_name = "NETWORK")]
    pub(crate) network: Option<String>,
    /// Fetch images that are missing
    #[arg(long)]
    pub(crate) pull: bool,
    /// Use no earlier build
    #[arg(long, alias = "no-cache")]
    pub(crate) fresh: bool,
    /// Which builder of the Engine to use
    #[arg(long, value_name = "BUILDER", default_value = "best")]
    pub(crate) builder: BuilderName,
    /// The files that the Dockerfile may use
    #[arg(value_name = "DIRECTORY", default_value = ".", conflicts_with = "base")]
    pub(crate) directory: PathBuf,
}

/// Which builder of the Engine is used: `best` is BuildKit where the Engine has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuilderName {
    Best,
    Classic,
    Buildkit,
}

/// What is removed.
#[derive(Args, Debug)]
pub(crate) struct PruneArguments {
    /// Prune the cache of builds; nothing else can be pruned
    #[arg(long, required = true)]
    pub(crate) builder: bool,
    /// Remove also what images still need
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep this much, such as 2G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) keep: Option<u64>,
}

/// Bytes, or so many times 1024 of them.
fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, ""),
    };
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => 0,
    };
    let number: Option<u64> = number.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "write a number of bytes, or one with K, M, G or T behind it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("0"), Ok(0));
        assert_eq!(size("5K"), Ok(5 * 1024));
        assert_eq!(size("2G"), Ok(2 << 30));
        for wrong in ["", "G", "1.5G", "-1", "2GB", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
