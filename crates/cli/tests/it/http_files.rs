//! Files over HTTP: listings, uploads, downloads, reads and writes.

use std::io::{Cursor, Read as _, Write as _};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::http_client::{Executor, content, form};

fn start() -> Result<Executor> {
    Executor::start(&[], &[])
}

#[test]
fn a_listing_has_directories_first_and_no_dangling_links() -> Result<()> {
    let executor = start()?;
    executor.output(
        "mkdir .hid d1 Zdir; touch .h2 big.txt Apple; ln -s d1 link; ln -s nowhere dangling",
    )?;
    let answer = executor.send("POST", "/list_files", "application/json", b"{}")?;
    assert_eq!(
        answer.json()?,
        json!([".hid/", "d1/", "link/", "Zdir/", ".h2", "Apple", "big.txt"])
    );
    let nowhere = executor.send(
        "POST",
        "/list_files",
        "application/json",
        b"{\"path\":\"/nope\"}",
    )?;
    assert_eq!((nowhere.status, nowhere.json()?), (200, json!([])));
    Ok(())
}

#[test]
fn a_file_is_uploaded_read_changed_and_downloaded() -> Result<()> {
    let executor = start()?;
    let target = executor.workspace()?.join("new/dir");
    let (kind, body) = form("up.txt", b"one\ntwo\n");
    let path = format!(
        "/upload_file?destination={}&recursive=false",
        target.display()
    );
    let answer = executor.send("POST", &path, &kind, &body)?;
    let expected = json!({ "filename": "up.txt", "destination": target, "recursive": false });
    assert_eq!((answer.status, answer.json()?), (200, expected));
    assert_eq!(executor.output("cat new/dir/up.txt")?, "one\ntwo");
    // Relative paths start at the shell's directory.
    executor.output("cd new")?;
    let read =
        executor.act(&json!({ "action": "read", "args": { "path": "dir/up.txt", "start": 1 } }))?;
    assert_eq!(content(&read), "two\n");
    executor.act(&json!({ "action": "write", "args": { "path": "dir/w.txt", "content": "a" } }))?;
    let path = format!("/download_files?path={}", target.display());
    let answer = executor.send("GET", &path, "application/json", b"")?;
    ensure!(
        answer.head.contains("content-type: application/zip"),
        "{}",
        answer.head
    );
    ensure!(
        answer
            .head
            .contains("content-disposition: attachment; filename=\"dir.zip\""),
        "{}",
        answer.head
    );
    let mut archive = zip::ZipArchive::new(Cursor::new(answer.body))?;
    let mut found = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let mut text = String::new();
        entry.read_to_string(&mut text)?;
        found.push((entry.name()?.into_owned(), text));
    }
    found.sort();
    let expected = [("up.txt", "one\ntwo\n"), ("w.txt", "a\n")]
        .map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn an_uploaded_archive_is_unpacked_and_a_hostile_one_leaves_nothing() -> Result<()> {
    let executor = start()?;
    let upload = |entries: &[(&str, &str)]| -> Result<_> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in entries {
            archive.start_file(*name, zip::write::SimpleFileOptions::default())?;
            archive.write_all(text.as_bytes())?;
        }
        let (kind, body) = form("x.zip", &archive.finish()?.into_inner());
        let target = executor.workspace()?.join("zz");
        let path = format!(
            "/upload_file?destination={}&recursive=true",
            target.display()
        );
        executor.send("POST", &path, &kind, &body)
    };
    assert_eq!(
        upload(&[("dir/f1.txt", "1"), ("dir/sub/f2.txt", "2")])?.status,
        200
    );
    assert_eq!(
        executor.output("cat zz/dir/f1.txt zz/dir/sub/f2.txt")?,
        "12"
    );
    let hostile = upload(&[("ok.txt", "1"), ("../../escaped.txt", "2")])?;
    ensure!(
        hostile.status == 500 && hostile.json()?["detail"].is_string(),
        "{}",
        hostile.text()
    );
    assert_eq!(
        executor.output("find . -name ok.txt -o -name escaped.txt; ls -A zz")?,
        "dir"
    );
    Ok(())
}

#[test]
fn refusals_of_transfers_have_the_texts_of_the_contract() -> Result<()> {
    let executor = start()?;
    let (kind, body) = form("x.txt", b"x");
    for (method, target, detail) in [
        (
            "POST",
            "/upload_file?destination=upd&recursive=false",
            "400: Destination must be an absolute path",
        ),
        (
            "POST",
            "/upload_file?destination=/tmp/zareba-nope&recursive=true",
            "400: Recursive uploads must be zip files",
        ),
        (
            "GET",
            "/download_files?path=zz",
            "400: Path must be an absolute path",
        ),
        ("GET", "/download_files?path=/nope", "404: File not found"),
    ] {
        let sent: &[u8] = if method == "POST" { &body } else { b"" };
        let answer = executor.send(method, target, &kind, sent)?;
        assert_eq!(
            (answer.status, answer.json()?),
            (500, json!({ "detail": detail })),
            "{target}"
        );
    }
    assert!(!std::path::Path::new("/tmp/zareba-nope").exists());
    Ok(())
}

#[test]
fn searches_find_names_and_lines_and_respect_ignore_files() -> Result<()> {
    let executor = start()?;
    executor.output("mkdir src; echo 'fn main() {}' > src/main.rs; echo 'fn lib() {}' > src/lib.rs; echo target > .gitignore; mkdir target; echo 'fn t() {}' > target/t.rs")?;
    let workspace = executor.workspace()?;
    let files = executor.act(&json!({ "action": "glob", "args": { "pattern": "**/*.rs" } }))?;
    let expected = [workspace.join("src/lib.rs"), workspace.join("src/main.rs")];
    assert_eq!(files["extras"]["files"], json!(expected));
    let lines = executor.act(&json!({ "action": "grep", "args": { "pattern": r"fn \w+\(\)" } }))?;
    let expected = format!(
        "{0}/src/lib.rs:1:fn lib() {{}}\n{0}/src/main.rs:1:fn main() {{}}",
        workspace.display()
    );
    assert_eq!(content(&lines), expected);
    Ok(())
}
