//! Which images run on this machine.

/// The operating system whose programs run here.
pub(crate) const OS: &str = "linux";

/// This machine's processor as images name it.
pub(crate) const fn architecture() -> &'static str {
    if cfg!(target_arch = "x86_64") {
        "amd64"
    } else if cfg!(target_arch = "aarch64") {
        "arm64"
    } else if cfg!(target_arch = "x86") {
        "386"
    } else if cfg!(all(target_arch = "powerpc64", target_endian = "little")) {
        "ppc64le"
    } else {
        std::env::consts::ARCH
    }
}

pub(crate) fn fits(os: &str, of: &str) -> bool {
    os == OS && of == architecture()
}
