//! What is a name of an image, what it means, and what is none.

use proptest::prelude::*;

use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[track_caller]
fn check(text: &str, canonical: &str, short: &str, api_host: &str) {
    let name = ImageName::parse(text).unwrap();
    assert_eq!(name.canonical(), canonical);
    assert_eq!(name.to_string(), short);
    assert_eq!(name.api_host(), api_host);
    assert_eq!(ImageName::parse(canonical).as_ref(), Ok(&name));
    assert_eq!(ImageName::parse(short).as_ref(), Ok(&name));
}

#[test]
fn a_short_name_is_completed() {
    let hub = "registry-1.docker.io";
    let full = "docker.io/library/debian:latest";
    check("debian", full, "debian:latest", hub);
    check("docker.io/debian", full, "debian:latest", hub);
    check("index.docker.io/library/debian", full, "debian:latest", hub);
    check(
        "someone/tool:1.2",
        "docker.io/someone/tool:1.2",
        "someone/tool:1.2",
        hub,
    );
    check(
        "docker.io/library/a/b",
        "docker.io/library/a/b:latest",
        "library/a/b:latest",
        hub,
    );
}

#[test]
fn a_registry_is_told_by_its_dot_or_port() {
    let local = "localhost:5000/a/b-c.d__e:X_1.-";
    check(local, local, local, "localhost:5000");
    check(
        "localhost/a",
        "localhost/a:latest",
        "localhost/a:latest",
        "localhost",
    );
    check(
        "GHCR.io/a/b",
        "ghcr.io/a/b:latest",
        "ghcr.io/a/b:latest",
        "ghcr.io",
    );
    let six = "[::1]:5000/a:b";
    check(six, six, six, "[::1]:5000");
}

#[test]
fn a_digest_is_kept_and_asked_for_first() {
    let pinned = ImageName::parse(&format!("debian:12@{DIGEST}")).unwrap();
    assert_eq!(pinned.reference(), DIGEST);
    assert_eq!(pinned.to_string(), format!("debian:12@{DIGEST}"));
    let bare = ImageName::parse(&format!("debian@{DIGEST}")).unwrap();
    assert_eq!(bare.tag(), None);
    assert_eq!(bare.to_string(), format!("debian@{DIGEST}"));
    assert_eq!(ImageName::parse("debian").unwrap().reference(), "latest");
}

#[test]
fn what_is_not_a_name_is_refused() {
    let long = "a".repeat(NAME_BYTES_MAX + 1);
    let long_tag = format!("a:{}", "t".repeat(129));
    for text in [
        "",
        "Debian",
        "a//b",
        "/a",
        "a/",
        "a/../b",
        "../a",
        ".a",
        "a.",
        "a..b",
        "a___b",
        "a_-b",
        "a b",
        "a\n",
        "a:",
        "a:-x",
        "a:b:c",
        "a:é",
        "a@",
        "a@sha512:00",
        "a@sha256:../..",
        "-x.y/a",
        "x.y:/a",
        "x.y:70000/a",
        "[::1/a",
        "[zz]/a",
        "a.b/",
        "http://a.b/c",
        &long,
        &long_tag,
    ] {
        let error = ImageName::parse(text).expect_err(text);
        assert!(error.to_string().contains("is not the name of an image"));
    }
    assert!(ImageName::parse(&long[1..]).is_ok());
}

proptest! {
    #[test]
    fn whatever_is_taken_is_written_and_read_alike(
        text in "([a-zA-Z.:\\[\\]-]{0,8}/)?[a-z0-9._/-]{0,12}(:[a-zA-Z0-9._-]{0,5})?"
    ) {
        if let Ok(name) = ImageName::parse(&text) {
            prop_assert_eq!(ImageName::parse(&name.to_string()), Ok(name.clone()));
            prop_assert_eq!(ImageName::parse(&name.canonical()), Ok(name));
        }
    }
}
