//! Variables that Kubernetes sets for a Service whose name begins with `zareba`.
//!
//! Kubernetes sets them in every container of a Service's namespace, in the form of Docker's old
//! links: `ZAREBA_SERVICE_HOST`, `ZAREBA_PORT_7070_TCP_ADDR`. They share the prefix of Zareba's own
//! variables and are no misspelt settings.

use std::ffi::OsStr;

/// The protocols of a Service's port.
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

/// Whether a variable that is no setting is one of a Service.
pub(crate) fn is_of_service(name: &str, value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    is_number_or_host(name, &value) || is_link(name, &value)
}

/// `{SERVICE}_SERVICE_HOST`, `{SERVICE}_SERVICE_PORT` and `{SERVICE}_SERVICE_PORT_{PORT NAME}`.
fn is_number_or_host(name: &str, value: &str) -> bool {
    if name.ends_with("_SERVICE_HOST") {
        return !value.is_empty();
    }
    let has_port = name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_");
    has_port && is_number(value)
}

/// `{SERVICE}_PORT` and `{SERVICE}_PORT_{NUMBER}_{PROTOCOL}`, which are addresses with a protocol,
/// and the parts of the latter: `_PROTO`, `_PORT` and `_ADDR`.
fn is_link(name: &str, value: &str) -> bool {
    let is_address = PROTOCOLS.iter().any(|protocol| {
        let rest = value.strip_prefix(&protocol.to_ascii_lowercase());
        rest.is_some_and(|rest| rest.starts_with("://"))
    });
    if name.ends_with("_PORT") && is_address {
        return true;
    }
    let is_of_port = |name: &str| {
        let of_protocol = PROTOCOLS
            .iter()
            .find_map(|protocol| name.strip_suffix(protocol)?.strip_suffix('_'));
        let numbered = of_protocol.and_then(|rest| rest.rsplit_once("_PORT_"));
        numbered.is_some_and(|(service, number)| !service.is_empty() && is_number(number))
    };
    let part = |suffix: &str| name.strip_suffix(suffix).is_some_and(is_of_port);
    (is_of_port(name) && is_address)
        || (part("_PROTO") && PROTOCOLS.iter().any(|it| it.eq_ignore_ascii_case(value)))
        || (part("_PORT") && is_number(value))
        || (part("_ADDR") && !value.is_empty())
}

fn is_number(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}
