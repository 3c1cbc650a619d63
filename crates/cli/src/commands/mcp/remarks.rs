//! What a model has to know of its sandbox before it plans its work: how the work is kept, what can
//! be reached, and which programs there are.

use serde_json::Value;

/// When what is in a sandbox goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// With the client, for whom it was made.
    UntilTheClientEnds,
    /// With the sandbox, which was there before.
    InTheSandbox,
}

/// What is known of a sandbox.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// The name of its runtime, `remote` for a server's.
    pub(super) runtime: &'a str,
    /// What it was made with, in the form of `about`.
    pub(super) about: &'a Value,
    pub(super) has_image: bool,
    /// A directory that was named for it by this client.
    pub(super) names_workspace: bool,
    pub(super) kept: Kept,
    pub(super) may_be_root: bool,
    /// Whether it sees the tools in the user's home, if that is known.
    pub(super) sees_home_tools: Option<bool>,
}

const PATCH: &str = "When the work is done, show the user the patch of `workspace_diff`, which \
                     `git apply` takes.";

impl Known<'_> {
    /// The sentences for the model.
    pub(super) fn remarks(&self) -> String {
        let sentences = [self.work(), self.network(), self.programs()];
        let said: Vec<String> = sentences.into_iter().flatten().collect();
        said.join(" ")
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.about.pointer(path)?.as_str()
    }

    fn work(&self) -> Option<String> {
        let mode = self.text("/workspace/mode").unwrap_or_default();
        if self.runtime == "remote" {
            return Some(self.work_on_a_server(mode));
        }
        let is_mounted = self.text("/workspace/directory").is_some();
        Some(match (is_mounted, mode, self.kept) {
            (true, "read-only", _) => "The workspace cannot be changed.".to_owned(),
            (true, "copy-on-write", Kept::UntilTheClientEnds) => format!(
                "The workspace is copied on write: the user's files stay as they are, and all \
                 changes are gone when this client ends. {PATCH}"
            ),
            (true, "copy-on-write", Kept::InTheSandbox) => format!(
                "The workspace is copied on write: the user's files stay as they are, and changes \
                 stay in the sandbox when this client ends. {PATCH}"
            ),
            (true, ..) => "Changes in the workspace reach the user's files.".to_owned(),
            (false, _, Kept::UntilTheClientEnds) => {
                "The workspace is empty, and everything in it is gone when this client ends."
                    .to_owned()
            }
            (false, _, Kept::InTheSandbox) => {
                "Files in the workspace stay in the sandbox when this client ends.".to_owned()
            }
        })
    }

    fn work_on_a_server(&self, mode: &str) -> String {
        let kept = match self.kept {
            Kept::UntilTheClientEnds if self.names_workspace && mode == "read-write" => {
                "changes in the workspace are kept in its directory on the server, and everything \
                 else is gone when this client ends"
            }
            Kept::UntilTheClientEnds => "everything in it is gone when this client ends",
            Kept::InTheSandbox => "everything in it stays there when this client ends",
        };
        let change = match mode {
            "read-only" => " The workspace cannot be changed.",
            _ => "",
        };
        format!("The sandbox is a session of a server: {kept}.{change}")
    }

    fn network(&self) -> Option<String> {
        let machine = match self.runtime {
            "remote" => "server's",
            _ => "user's",
        };
        Some(match self.text("/network/reach")? {
            "none" => "There is no network.".to_owned(),
            "host" => format!("The network is that of the {machine} machine."),
            "filtered" => {
                let hosts = self
                    .about
                    .pointer("/network/allow")
                    .and_then(Value::as_array);
                let hosts = hosts.into_iter().flatten().filter_map(Value::as_str);
                let hosts: Vec<&str> = hosts.collect();
                match hosts.is_empty() {
                    true => "The network is filtered.".to_owned(),
                    false => format!("Only these hosts can be reached: {}.", hosts.join(", ")),
                }
            }
            "machine" => format!("Only the {machine} machine can be reached."),
            "internet" => "The internet can be reached.".to_owned(),
            name => format!("The network is `{name}` of the Docker Engine."),
        })
    }

    fn programs(&self) -> Option<String> {
        let root = match self.may_be_root {
            true => "",
            false => " There is no root and no sudo.",
        };
        match (self.runtime, self.has_image) {
            ("cli" | "local", _) => Some(
                "Commands run on the user's machine itself, without isolation: leave files outside \
                 the workspace alone."
                    .to_owned(),
            ),
            ("docker", _) | (_, true) => Some(format!("Programs are those of an image.{root}")),
            ("native", false) => {
                let of_home = match self.sees_home_tools {
                    Some(true) => ", and tools in the user's home",
                    Some(false) => ", without the tools in the user's home",
                    None => "",
                };
                Some(format!("Programs are those of the user's system{of_home}.{root}"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(runtime: &str, kept: Kept, about: &Value) -> String {
        let known = Known {
            runtime,
            about,
            has_image: false,
            names_workspace: false,
            kept,
            may_be_root: runtime == "remote",
            sees_home_tools: (kept == Kept::UntilTheClientEnds).then_some(false),
        };
        known.remarks()
    }

    #[test]
    fn a_model_learns_how_its_work_is_kept_and_what_it_can_reach() {
        let programs = "Programs are those of the user's system, without the tools in the user's \
                        home. There is no root and no sudo.";
        let about = json!({ "workspace": null, "network": { "reach": "none" } });
        let fresh = Kept::UntilTheClientEnds;
        assert_eq!(
            told("native", fresh, &about),
            format!(
                "The workspace is empty, and everything in it is gone when this client ends. There \
                 is no network. {programs}"
            )
        );
        let about = json!({
            "workspace": { "directory": "/w", "mode": "read-write" },
            "network": { "reach": "filtered", "allow": ["a.example", "b.example"], "deny": [] },
        });
        assert_eq!(
            told("native", fresh, &about),
            format!(
                "Changes in the workspace reach the user's files. Only these hosts can be reached: \
                 a.example, b.example. {programs}"
            )
        );
        let about = json!({ "workspace": { "directory": "/w", "mode": "copy-on-write" } });
        assert!(told("native", fresh, &about).contains("changes are gone when this client ends"));
        let lasting = told("native", Kept::InTheSandbox, &about);
        assert!(
            lasting.contains("changes stay in the sandbox when"),
            "{lasting}"
        );
        let programs = "Programs are those of the user's system. There is no root and no sudo.";
        assert!(lasting.ends_with(programs), "{lasting}");
    }

    #[test]
    fn a_model_learns_that_it_sees_the_tools_of_a_home() {
        let known = Known {
            runtime: "native",
            about: &json!({}),
            has_image: false,
            names_workspace: false,
            kept: Kept::UntilTheClientEnds,
            may_be_root: false,
            sees_home_tools: Some(true),
        };
        let programs = "Programs are those of the user's system, and tools in the user's home. ";
        assert!(known.remarks().contains(programs), "{}", known.remarks());
    }

    #[test]
    fn every_runtime_has_words_that_are_true_of_it() {
        let mounted = json!({
            "workspace": { "directory": "/w", "mode": "read-write" },
            "network": { "reach": "internet" },
        });
        let fresh = Kept::UntilTheClientEnds;
        assert_eq!(
            told("docker", fresh, &mounted),
            "Changes in the workspace reach the user's files. The internet can be reached. \
             Programs are those of an image. There is no root and no sudo."
        );
        assert!(told("local", fresh, &mounted).contains("without isolation"));
        let session = json!({
            "workspace": { "directory": "/workspace", "mode": "copy-on-write" },
            "network": { "reach": "none", "allow": null, "deny": [] },
        });
        assert_eq!(
            told("remote", Kept::InTheSandbox, &session),
            "The sandbox is a session of a server: everything in it stays there when this client \
             ends. There is no network."
        );
        assert_eq!(
            told("remote", fresh, &json!({})),
            "The sandbox is a session of a server: everything in it is gone when this client ends."
        );
    }
}
