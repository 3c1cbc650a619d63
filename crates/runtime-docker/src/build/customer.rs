//! For whom images are built, and which names they may give.
//!
//! A client may give a name that nobody has, and one that it has given itself: by that, nobody
//! puts an image of their own in the place of one that others start. What was built for whom is
//! written on the image, where the Engine keeps it and no Dockerfile can change it.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{docker::Shared, image::with_tag};

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
    use super::*;

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
