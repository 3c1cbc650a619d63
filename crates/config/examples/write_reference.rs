//! Writes the key tables into `docs/configuration.md`, between the two marks.

use std::fs;
use std::io;
use std::path::Path;

use zareba_config::reference_markdown;

const BEGIN: &str = "<!-- reference: begin -->\n";
const END: &str = "\n<!-- reference: end -->";

fn main() -> io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = fs::read_to_string(&path)?;
    let missing = || io::Error::other("docs/configuration.md has lost its reference marks");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    fs::write(
        &path,
        format!("{before}{BEGIN}{}{END}{after}", reference_markdown()),
    )
}
