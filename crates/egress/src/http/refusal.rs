//! What a client is told in place of the server's answer.

use std::net::IpAddr;

use crate::denial::Denial;

/// The answer to a request that may not leave.
pub(crate) fn denied(denial: &Denial) -> Vec<u8> {
    answer("403 Forbidden", "egress_denied", &denial.to_string())
}

/// The answer to a request that may leave and found nobody.
pub(crate) fn unreachable(address: IpAddr, port: u16) -> Vec<u8> {
    let message = format!("{address} port {port} is allowed and does not accept the connection");
    answer("502 Bad Gateway", "egress_unreachable", &message)
}

fn answer(status: &str, code: &str, message: &str) -> Vec<u8> {
    let body = serde_json::json!({ "error": { "code": code, "message": message } }).to_string();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_missing() {
        let name = crate::host::HostName::parse("example.com").unwrap();
        let text = String::from_utf8(denied(&Denial::NamePort { name, port: 80 })).unwrap();
        let body = "{\"error\":{\"code\":\"egress_denied\",\"message\":\"`example.com:80` is not \
                    allowed; add `example.com` to native.allow\"}}";
        assert!(text.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{text}");
        assert!(
            text.contains(&format!("Content-Length: {}\r\n", body.len())),
            "{text}"
        );
        assert!(text.ends_with(&format!("\r\n\r\n{body}")), "{text}");
    }
}
