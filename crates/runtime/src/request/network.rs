//! The network of a request.

use serde::{Deserialize, Serialize};

/// What a sandbox shall reach; what is left out is as the operator's settings say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkRequest {
    /// The backend's word for it, such as `none`, `filtered` or `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What a filtered network lets through, in place of the operator's list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// What it lets through in no case, beside the operator's list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

/// What a sandbox can reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkGrant {
    /// The backend's word for it.
    pub mode: String,
    /// What a filtered network lets through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// What it lets through in no case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl NetworkGrant {
    /// One without rules.
    pub fn of(mode: impl Into<String>) -> Self {
        Self {
            mode: mode.into(),
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }
}

/// Whether a network reaches less than another one, for certain. Of a network that has a name of
/// its own, only `none` is known to.
pub fn is_stricter(mode: &str, than: &str) -> bool {
    let reach = |mode| match mode {
        "none" => Some(0),
        "filtered" | "machine" => Some(1),
        "internet" => Some(2),
        "host" => Some(3),
        _ => None,
    };
    match (reach(mode), reach(than)) {
        (Some(one), Some(other)) => one < other,
        (Some(0), None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_stricter_only_when_that_is_certain() {
        let modes = ["none", "filtered", "machine", "internet", "host", "tools"];
        let stricter = |than| modes.map(|mode| is_stricter(mode, than));
        assert_eq!(stricter("none"), [false; 6]);
        assert_eq!(
            stricter("filtered"),
            [true, false, false, false, false, false]
        );
        assert_eq!(
            stricter("internet"),
            [true, true, true, false, false, false]
        );
        assert_eq!(stricter("host"), [true, true, true, true, false, false]);
        assert_eq!(stricter("tools"), [true, false, false, false, false, false]);
    }
}
