//! `/dev` in sandboxes that are copies: put together once, and shown to all of them.

use std::collections::BTreeSet;

use zareba_runtime::Sandbox;

use super::{COPIES_FROM, close, create};
use crate::fixture::{self, output};

async fn mounts(sandbox: &dyn Sandbox) -> BTreeSet<String> {
    let report = sandbox.inspect().await.unwrap();
    let mounts = report["enforcement"]["mounts"]["mounts"].as_array();
    mounts.unwrap().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_copy_has_the_mounts_of_one_that_was_started_anew() {
    let fixture = fixture::native();
    let sandboxes = create(&fixture.runtime, COPIES_FROM + 1).await;
    let anew = mounts(&*sandboxes[0]).await;
    assert!(anew.iter().any(|mount| mount.contains("/dev/null")));
    assert_eq!(mounts(&*sandboxes[COPIES_FROM]).await, anew);
    let listing =
        "ls /dev; stat -c '%n %t %T %a %F' /dev/[a-z]* | grep -v shm; readlink /dev/[a-z]*; true";
    let listed = output(&*sandboxes[0], listing).await;
    assert!(listed.contains("urandom"), "{listed}");
    assert_eq!(output(&*sandboxes[COPIES_FROM], listing).await, listed);
    close(sandboxes).await;
}

#[tokio::test]
async fn what_copies_share_none_of_them_can_change() {
    let fixture = fixture::native();
    let sandboxes = create(&fixture.runtime, COPIES_FROM + 2).await;
    let [.., one, other] = &*sandboxes else {
        panic!("not enough");
    };
    let attempts = "
        for attempt in 'touch /dev/new' 'mkdir /dev/new' 'rm /dev/fd' 'rmdir /dev/shm' 'mv /dev/fd /dev/new' \
            'ln -s x /dev/new' 'chmod 777 /dev' 'chown agent /dev' 'mount -o remount,rw /dev' 'umount /dev/null'; do
            $attempt 2>/dev/null && echo \"$attempt\"
        done; echo shared > /dev/shm/file; echo thrown away > /dev/null; cat /dev/null /dev/shm/file";
    assert_eq!(output(&**one, attempts).await, "shared");
    let seen = output(
        &**other,
        "ls /dev/shm; head -c 3 /dev/zero | wc -c; ls -d /dev/new; true",
    );
    assert_eq!(
        seen.await,
        "3\nls: cannot access '/dev/new': No such file or directory"
    );
    close(sandboxes).await;
}
