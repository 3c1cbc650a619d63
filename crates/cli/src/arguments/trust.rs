//! `zareba trust`.

use std::path::PathBuf;

use clap::Args;

/// Trust what the configuration file of a project says
#[derive(Args, Debug)]
#[command(after_help = "\
Shows what the file sets that an untrusted one may not, and asks at the terminal. What is trusted is
this content at this place: a file that changes is untrusted again.

Examples:
  zareba trust
  zareba trust project/zareba.toml --hash \"$(sha256sum < project/zareba.toml | cut -d' ' -f1)\"
  zareba trust --list")]
pub(crate) struct TrustArguments {
    /// The file, or a directory that has one [default: that of the current directory]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Trust it without asking if its content has this SHA-256
    #[arg(long, value_name = "SHA256", conflicts_with_all = ["list", "remove"])]
    pub(crate) hash: Option<String>,
    /// List the files that are trusted
    #[arg(long, conflicts_with_all = ["file", "remove"])]
    pub(crate) list: bool,
    /// Trust the file no longer
    #[arg(long)]
    pub(crate) remove: bool,
}
