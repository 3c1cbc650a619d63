//! Files: read, written, edited, listed, copied.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    sync::Arc,
};

use anyhow::{Context as _, bail};
use zareba_protocol::{
    Action, EditFile, ErrorClass, Observation, ObservationKind, ReadFile, WriteFile,
};
use zareba_runtime::Sandbox;

use super::{
    Failure, Trial,
    trial::{command_of, output, output_in},
};

/// By file actions alone, and seen by commands.
pub async fn a_file_is_written_read_and_edited(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let path = sandbox.workspace().join("notes.txt").display().to_string();
    let written = observe(
        &*sandbox,
        Action::Write(WriteFile::new("notes.txt", "one\ntwo")),
    )
    .await?;
    assert_eq!(written, Observation::write(&path));
    let edit = EditFile {
        old_str: Some("two".to_owned()),
        new_str: Some("three".to_owned()),
        ..EditFile::new(&path, "str_replace")
    };
    let edited = observe(&*sandbox, Action::Edit(edit)).await?;
    assert_eq!(edited.kind_name(), "edit", "{edited:?}");
    let read = observe(&*sandbox, Action::Read(ReadFile::new("notes.txt"))).await?;
    assert_eq!(
        (read.kind_name(), read.content.as_str()),
        ("read", "one\nthree\n")
    );
    assert_eq!(output(&*sandbox, "cat notes.txt").await?, "one\nthree");
    let missing = observe(&*sandbox, Action::Read(ReadFile::new("missing.txt"))).await?;
    let is_error = matches!(missing.kind, ObservationKind::Error { .. });
    assert!(is_error, "{missing:?}");
    sandbox.close().await?;
    Ok(())
}

/// A read waits for no shell.
pub async fn files_are_read_while_a_command_runs(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "echo text > file; mkfifo begun gate").await?;
    let asked = Arc::clone(&sandbox);
    let command = "echo yes > begun; cat gate";
    let waits = tokio::spawn(async move { asked.run_action(command_of(command).into()).await });
    output_in(&*sandbox, "other", "cat begun").await?;
    let read = observe(&*sandbox, Action::Read(ReadFile::new("file"))).await?;
    assert_eq!(read.content, "text\n");
    output_in(&*sandbox, "other", "echo > gate").await?;
    waits.await??;
    sandbox.close().await?;
    Ok(())
}

/// Directories first, each group by name; what is no directory has no names.
pub async fn directories_are_listed(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    output(&*sandbox, "mkdir sub Empty; touch b A sub/inner").await?;
    assert_eq!(
        sandbox.list_files(None).await?,
        ["Empty/", "sub/", "A", "b"]
    );
    assert_eq!(sandbox.list_files(Some("sub".to_owned())).await?, ["inner"]);
    assert_eq!(
        sandbox.list_files(Some("missing".to_owned())).await?,
        [""; 0]
    );
    sandbox.close().await?;
    Ok(())
}

/// In, it keeps its name; out, its content comes. Modes, links and odd names survive.
pub async fn a_directory_is_copied_both_ways(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let here = tempfile::tempdir()?;
    let tree = here.path().join("tree");
    fs::create_dir_all(tree.join("deep/er"))?;
    fs::create_dir(tree.join("empty"))?;
    fs::write(tree.join("deep/er/日本 file"), "x".repeat(100_000))?;
    fs::write(tree.join("run.sh"), "#!/bin/sh\necho ran\n")?;
    fs::set_permissions(tree.join("run.sh"), fs::Permissions::from_mode(0o755))?;
    symlink("run.sh", tree.join("link"))?;
    sandbox.copy_to(&tree, Path::new("made/on/the/way")).await?;
    assert_eq!(output(&*sandbox, "made/on/the/way/tree/link").await?, "ran");
    let back = here.path().join("back");
    sandbox
        .copy_from(Path::new("made/on/the/way/tree"), &back)
        .await?;
    assert_eq!(contents(&back)?, contents(&tree)?);
    sandbox.close().await?;
    Ok(())
}

/// Under its own name, over what was there.
pub async fn one_file_is_copied_both_ways(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let here = tempfile::tempdir()?;
    let file = here.path().join("file.bin");
    let bytes: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    fs::write(&file, &bytes)?;
    output(&*sandbox, "mkdir place; echo old > place/file.bin").await?;
    sandbox
        .copy_to(&file, &sandbox.workspace().join("place"))
        .await?;
    let back = here.path().join("back");
    sandbox
        .copy_from(Path::new("place/file.bin"), &back)
        .await?;
    assert!(
        fs::read(back.join("file.bin"))? == bytes,
        "the bytes differ"
    );
    sandbox.close().await?;
    Ok(())
}

/// And nothing is made for it.
pub async fn what_is_not_there_cannot_be_copied(trial: &Trial) -> Result<(), Failure> {
    let sandbox = trial.sandbox().await?;
    let here = tempfile::tempdir()?;
    let missing = here.path().join("missing");
    let refusal = sandbox.copy_to(&missing, Path::new("in")).await.err();
    let refusal = refusal.context("a file was copied in that is not there")?;
    assert_eq!(refusal.class(), ErrorClass::NotFound);
    let out = here.path().join("out");
    let refusal = sandbox.copy_from(Path::new("missing"), &out).await.err();
    let refusal = refusal.context("a file was copied out that is not there")?;
    assert_eq!(refusal.class(), ErrorClass::NotFound);
    assert_eq!(sandbox.list_files(None).await?, [""; 0]);
    assert!(!out.exists());
    sandbox.close().await?;
    Ok(())
}

async fn observe(sandbox: &dyn Sandbox, action: Action) -> Result<Observation, Failure> {
    Ok(sandbox.run_action(action.into()).await?.observation)
}

/// Kind, mode and content of everything in a tree.
fn contents(root: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let metadata = fs::symlink_metadata(&path)?;
            let mode = metadata.permissions().mode() & 0o777;
            let told = if metadata.is_symlink() {
                format!("link to {}", fs::read_link(&path)?.display())
            } else if metadata.is_dir() {
                pending.push(path.clone());
                format!("directory {mode:o}")
            } else if metadata.is_file() {
                format!("file {mode:o} {}", fs::read_to_string(&path)?)
            } else {
                bail!("neither file, directory nor link: {}", path.display());
            };
            found.insert(path.strip_prefix(root)?.display().to_string(), told);
        }
    }
    Ok(found)
}
