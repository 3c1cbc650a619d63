//! For whom images are built, and which names they may give.
//!
//! A client may give a name that nobody has, and one that it has given itself: by that, nobody
//! puts an image of their own in the place of one that others start. Where missing images are
//! fetched, a name that its registry has is somebody's also before the Engine has it. What was
//! built for whom is written on the image, where the Engine keeps it and no Dockerfile can change
//! it.

use std::time::Duration;

use bollard::errors::Error as Reply;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{BuildError, ImageBuilder, check_name, line::Turn};
use crate::{EngineError, docker::Shared, engine::EngineKind, image::with_tag};

/// How long registries may take to say whether they have the names of one image.
const REGISTRIES_MAX: Duration = Duration::from_secs(30);

/// Labels of an image that was built for a client: for whom, and under which names.
const BUILT_FOR: &str = "dev.zareba.built-for";
const BUILT_AS: &str = "dev.zareba.built-as";

/// For whom images are built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Customer {
    /// Whoever runs this: any name will do.
    Operator,
    /// One of those who share an Engine.
    Client(String),
}

impl Customer {
    /// What is written on images; nothing for the operator's.
    pub(super) fn labels(&self, shared: &Shared, names: &[String]) -> Option<Value> {
        let Self::Client(client) = self else {
            return None;
        };
        let names: Vec<String> = names.iter().map(|name| familiar(name)).collect();
        Some(json!({
            BUILT_FOR: mark(&shared.owner, client),
            BUILT_AS: names.join(" "),
        }))
    }

    /// Whether a name may be given, when this is what the Engine knows of the image that has it.
    pub(super) fn may_give(&self, shared: &Shared, name: &str, found: Option<&Value>) -> bool {
        let Self::Client(client) = self else {
            return true;
        };
        let name = familiar(name);
        if is_listed(shared, &name) {
            return false;
        }
        let Some(found) = found else {
            return true;
        };
        let labels = &found["Config"]["Labels"];
        let names = labels[BUILT_AS].as_str().unwrap_or_default();
        labels[BUILT_FOR] == mark(&shared.owner, client) && names.split(' ').any(|it| it == name)
    }

    /// Whether an image may be built on unasked, by what the Engine knows of it: our own, and one
    /// that was built for no client.
    fn may_reuse(&self, shared: &Shared, found: &Value) -> bool {
        match (&found["Config"]["Labels"][BUILT_FOR], self) {
            (Value::Null, _) => true,
            (_, Self::Operator) => false,
            (built_for, Self::Client(client)) => *built_for == mark(&shared.owner, client),
        }
    }
}

impl ImageBuilder {
    /// A place in the line, which the operator does not need.
    pub(super) async fn turn(&self, names: &[String]) -> Result<Option<Turn>, BuildError> {
        let Customer::Client(client) = &self.customer else {
            return Ok(None);
        };
        let names: Vec<String> = names.iter().map(|name| familiar(name)).collect();
        self.shared.builds.turn(client, &names).await.map(Some)
    }

    /// Names of others stay theirs.
    pub(super) async fn check_owned(&self, names: &[String]) -> Result<(), BuildError> {
        if self.customer == Customer::Operator {
            return Ok(());
        }
        let mut new = Vec::new();
        for name in names {
            let found = self.look_up(name).await?;
            if !self.customer.may_give(&self.shared, name, found.as_ref()) {
                let image = name.clone();
                return Err(BuildError::NotYours { image });
            }
            new.extend(found.is_none().then_some(name.as_str()));
        }
        if new.is_empty() || !self.may_fetch() {
            return Ok(());
        }
        let deadline = tokio::time::Instant::now() + REGISTRIES_MAX;
        for name in new {
            let asked = tokio::time::timeout_at(deadline, self.ask_registry(name)).await;
            must_be_free(name, asked.unwrap_or_else(|_| Err(too_slow(name))))?;
        }
        Ok(())
    }

    async fn ask_registry(&self, name: &str) -> Result<bool, BuildError> {
        // It says of every image that it is not there.
        if self.shared.engine().await?.kind() == EngineKind::Podman {
            return Err(BuildError::invalid("Podman does not ask registries for us"));
        }
        self.is_in_registry(name).await
    }

    /// Whether an image is there that may be built on unasked.
    pub(super) async fn has_for_us(&self, image: &str) -> Result<bool, BuildError> {
        check_name(image)?;
        self.check_allowed(image)?;
        let found = self.look_up(image).await?;
        Ok(found.is_some_and(|found| self.customer.may_reuse(&self.shared, &found)))
    }
}

/// Takes a name only if its registry does not have it; one that does not say so may.
fn must_be_free(name: &str, is_in_registry: Result<bool, BuildError>) -> Result<(), BuildError> {
    let image = name.to_owned();
    match is_in_registry {
        Ok(false) => Ok(()),
        Ok(true) => Err(BuildError::InRegistry { image }),
        Err(error) => Err(BuildError::RegistryUnsure {
            image,
            source: Box::new(error),
        }),
    }
}

fn too_slow(name: &str) -> BuildError {
    let deed = format!("look for the image `{name}` in its registry");
    EngineError::new(deed, Reply::RequestTimeoutError).into()
}

/// Names that the operator has written out are the operator's, also when nobody has them yet.
fn is_listed(shared: &Shared, name: &str) -> bool {
    let options = &shared.options;
    let listed = options.allowed.images.iter().flatten();
    let listed = listed.filter(|pattern| !pattern.contains('*'));
    listed
        .chain(&options.image)
        .any(|image| familiar(image) == name)
}

/// The client of this installation, without telling who it is.
fn mark(owner: &str, client: &str) -> String {
    let hash = Sha256::digest(format!("{owner}\n{client}"));
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One spelling for the many that mean the same image.
fn familiar(name: &str) -> String {
    let name = with_tag(name);
    for registry in ["docker.io/", "index.docker.io/"] {
        if let Some(rest) = name.strip_prefix(registry) {
            return rest.strip_prefix("library/").unwrap_or(rest).to_owned();
        }
    }
    name.strip_prefix("library/").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tempfile::TempDir;
    use zareba_protocol::ErrorClass;

    use super::*;
    use crate::{DockerOptions, DockerRuntime, EngineAddress};

    /// A builder whose Engine is never asked anything.
    fn builder(state: &TempDir) -> ImageBuilder {
        let nowhere = state.path().join("nothing");
        let engine = EngineAddress::Unix(nowhere.clone());
        let options = DockerOptions::hardened(engine, state.path().to_owned(), nowhere);
        DockerRuntime::new(options).unwrap().image_builder()
    }

    #[test]
    fn what_another_client_has_built_is_not_built_on_unasked() {
        let state = TempDir::new().unwrap();
        let builder = builder(&state);
        let shared = &*builder.shared;
        let client = |name: &str| Customer::Client(name.to_owned());
        let (alice, bob) = (client("alice"), client("bob"));
        let names = ["zareba/x".to_owned()];
        let of = |customer: &Customer| {
            let labels = customer.labels(shared, &names);
            json!({ "Config": { "Labels": labels } })
        };
        let elsewhere = mark("another installation", "alice");
        let elsewhere = json!({ "Config": { "Labels": { BUILT_FOR: elsewhere } } });
        for (customer, found, may) in [
            (&alice, of(&alice), true),
            (&alice, of(&bob), false),
            (&alice, of(&Customer::Operator), true),
            (&alice, elsewhere.clone(), false),
            (&Customer::Operator, of(&alice), false),
            (&Customer::Operator, of(&client("")), false),
            (&Customer::Operator, elsewhere, false),
            (&Customer::Operator, of(&Customer::Operator), true),
            (&Customer::Operator, json!({ "Config": null }), true),
        ] {
            assert_eq!(
                customer.may_reuse(shared, &found),
                may,
                "{customer:?} {found}"
            );
        }
    }

    #[tokio::test]
    async fn one_image_is_built_at_a_time_however_it_is_spelled() {
        let state = TempDir::new().unwrap();
        let builder = builder(&state);
        let (alice, bob) = (builder.on_behalf_of("alice"), builder.on_behalf_of("bob"));
        for spelling in ["zareba/x:latest", "docker.io/zareba/x"] {
            let first = alice.turn(&["zareba/x".to_owned()]).await.unwrap();
            let same = [spelling.to_owned()];
            assert!(bob.turn(&same).now_or_never().is_none(), "{spelling}");
            let other = ["zareba/x:2".to_owned()];
            assert!(bob.turn(&other).now_or_never().is_some());
            drop(first);
            assert!(bob.turn(&same).now_or_never().is_some(), "{spelling}");
        }
    }

    #[test]
    fn only_a_name_that_its_registry_does_not_have_is_free() {
        assert!(must_be_free("x:1", Ok(false)).is_ok());
        let taken = must_be_free("x:1", Ok(true)).unwrap_err();
        assert!(matches!(taken, BuildError::InRegistry { .. }), "{taken}");
        let unsure = must_be_free("x:1", Err(too_slow("x:1"))).unwrap_err();
        assert_eq!(unsure.class(), ErrorClass::Permission);
        assert!(unsure.to_string().contains("docker.pull"), "{unsure}");
        let cause = std::error::Error::source(&unsure).unwrap().to_string();
        assert!(cause.contains("in time"), "{cause}");
    }

    #[test]
    fn names_that_mean_the_same_are_the_same() {
        for name in [
            "debian",
            "debian:latest",
            "library/debian",
            "docker.io/debian",
            "docker.io/library/debian:latest",
            "index.docker.io/library/debian",
        ] {
            assert_eq!(familiar(name), "debian:latest", "{name}");
        }
        assert_eq!(familiar("docker.io/team/x:1"), "team/x:1");
        assert_eq!(familiar("host:5000/library/x:1"), "host:5000/library/x:1");
    }

    #[test]
    fn clients_are_told_apart_also_between_installations() {
        assert_ne!(mark("one", "alice"), mark("one", "bob"));
        assert_ne!(mark("one", "alice"), mark("two", "alice"));
        assert_eq!(mark("one", "alice").len(), 64);
    }
}
