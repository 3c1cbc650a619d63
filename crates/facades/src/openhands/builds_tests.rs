//! Tests of what is remembered of builds, and for whom.

use tokio::sync::oneshot;

use super::*;

/// Ends builds when it is told to.
struct Service(Mutex<Option<oneshot::Receiver<Result<String, RemoteBuildError>>>>);

impl Service {
    fn new() -> (Self, oneshot::Sender<Result<String, RemoteBuildError>>) {
        let (end, ended) = oneshot::channel();
        (Self(Mutex::new(Some(ended))), end)
    }
}

impl BuildService for Service {
    fn scratch(&self) -> io::Result<File> {
        File::open("/dev/null")
    }

    fn build(
        &self,
        _: &Owner,
        _: RemoteBuild,
    ) -> BoxFuture<'static, Result<String, RemoteBuildError>> {
        let ended = self.0.lock().unwrap().take().unwrap();
        Box::pin(async move { ended.await.unwrap() })
    }
}

fn order() -> RemoteBuild {
    RemoteBuild {
        context: File::open("/dev/null").unwrap(),
        names: vec!["a:b".to_owned()],
    }
}

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn owner(name: &str) -> Owner {
    Owner(name.to_owned())
}

#[tokio::test]
async fn a_build_is_its_owners_and_is_told_when_it_ends() {
    let builds = Builds::default();
    let (service, end) = Service::new();
    let slot = builds.slot(&owner("ann")).unwrap();
    let id = builds.start(&service, order(), slot);
    assert_eq!(builds.status(&id, &owner("ben"), LONG).await, None);
    assert_eq!(builds.status("build-0", &owner("ann"), LONG).await, None);
    let ann = owner("ann");
    let told = builds.status(&id, &ann, LONG);
    let ended = async { end.send(Ok("a:b".to_owned())).unwrap() };
    let (told, ()) = tokio::join!(told, ended);
    assert_eq!(told, Some(json!({ "status": "SUCCESS", "image": "a:b" })));
}

#[tokio::test]
async fn a_build_that_goes_on_is_told_as_such() {
    let builds = Builds::default();
    let (service, end) = Service::new();
    let id = builds.start(&service, order(), builds.slot(&owner("ann")).unwrap());
    let told = builds.status(&id, &owner("ann"), Duration::ZERO).await;
    assert_eq!(told, Some(json!({ "status": "WORKING" })));
    end.send(Err(RemoteBuildError {
        reason: "no".to_owned(),
        kind: RemoteBuildFault::Failure,
    }))
    .unwrap();
    let told = builds.status(&id, &owner("ann"), LONG).await;
    assert_eq!(told, Some(json!({ "status": "FAILURE", "error": "no" })));
}

#[tokio::test]
async fn there_are_no_more_than_there_may_be() {
    let builds = Builds::default();
    let mut slots = Vec::new();
    while let Some(slot) = builds.slot(&owner("ann")) {
        slots.push(slot);
    }
    assert_eq!(slots.len(), BUILDS_EACH_MAX);
    // Others still have theirs.
    for number in slots.len()..BUILDS_MAX {
        slots.push(builds.slot(&owner(&number.to_string())).unwrap());
    }
    assert!(builds.slot(&owner("ben")).is_none());
    drop(slots);
    assert!(builds.slot(&owner("ann")).is_some());
    let mut first = None;
    for _ in 0..=KNOWN_MAX {
        let (service, end) = Service::new();
        let slot = builds.slot(&owner("ann")).unwrap();
        let id = builds.start(&service, order(), slot);
        end.send(Ok(String::new())).unwrap();
        builds.status(&id, &owner("ann"), LONG).await.unwrap();
        // Its task has ended when it has given its room back.
        while !builds.taken.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        first.get_or_insert(id);
    }
    assert_eq!(builds.known().builds.len(), KNOWN_MAX);
    assert_eq!(
        builds.status(&first.unwrap(), &owner("ann"), LONG).await,
        None
    );
}

#[tokio::test]
async fn builds_end_with_the_facade() {
    let builds = Builds::default();
    let (service, mut end) = Service::new();
    builds.start(&service, order(), builds.slot(&owner("ann")).unwrap());
    drop(builds);
    end.closed().await;
}
