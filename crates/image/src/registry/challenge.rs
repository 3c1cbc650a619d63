//! What a registry wants before it answers: the `WWW-Authenticate` header (RFC 9110, 11.6.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// Longest header that is read; real ones have a few hundred bytes.
const HEADER_BYTES_MAX: usize = 8 * 1024;

/// The way in that a registry offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User name and password with every request.
    Basic,
    /// A token, from the service at `realm`.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

impl Challenge {
    /// The best of those that are offered. A token is better, as the registry itself then never
    /// sees the password.
    pub(super) fn read(headers: &HeaderMap) -> Option<Self> {
        let offers: Vec<_> = headers
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .filter(|value| value.len() <= HEADER_BYTES_MAX)
            .flat_map(offers)
            .collect();
        offers
            .iter()
            .find_map(Offer::bearer)
            .or_else(|| offers.iter().find_map(Offer::basic))
    }
}

/// A scheme with its parameters, as they stand in the header.
struct Offer<'a> {
    scheme: &'a str,
    parameters: Vec<(&'a str, String)>,
}

impl Offer<'_> {
    fn bearer(&self) -> Option<Challenge> {
        self.is("bearer").then_some(())?;
        Some(Challenge::Bearer {
            realm: self.parameter("realm")?,
            service: self.parameter("service"),
            scope: self.parameter("scope"),
        })
    }

    fn basic(&self) -> Option<Challenge> {
        self.is("basic").then_some(Challenge::Basic)
    }

    fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let mut parameters = self.parameters.iter();
        let (_, value) = parameters.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(value.clone())
    }
}

/// A word before `=` is a parameter of the scheme before it, any other word a new scheme. What
/// does not fit ends the list: half-understood offers are not acted upon.
fn offers(header: &str) -> Vec<Offer<'_>> {
    let mut offers: Vec<Offer<'_>> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (word, after) = split_word(rest);
        if word.is_empty() {
            return offers;
        }
        match (after.trim_start().strip_prefix('='), offers.last_mut()) {
            (Some(value), Some(offer)) => {
                let Some((value, after)) = split_value(value.trim_start()) else {
                    return offers;
                };
                offer.parameters.push((word, value));
                rest = after;
            }
            (Some(_), None) => return offers,
            (None, _) => {
                offers.push(Offer {
                    scheme: word,
                    parameters: Vec::new(),
                });
                rest = after;
            }
        }
    }
}

fn split_word(text: &str) -> (&str, &str) {
    let is_end = |character: char| {
        !character.is_ascii_alphanumeric() && !"!#$%&'*+-.^_`|~/:".contains(character)
    };
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// A word, or a text in quotes with `\` before what is meant literally. `None` for a text whose
/// quote never ends.
fn split_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, rest) = split_word(text);
        return Some((word.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Some((value, quoted.get(index + 1..)?)),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn read(headers: &[&str]) -> Option<Challenge> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(WWW_AUTHENTICATE, HeaderValue::from_str(header).unwrap());
        }
        Challenge::read(&map)
    }

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer {
            realm: realm.to_owned(),
            service: service.map(str::to_owned),
            scope: scope.map(str::to_owned),
        })
    }

    #[test]
    fn a_bearer_challenge_is_read_with_its_parameters() {
        let header = r#"Bearer realm="https://auth.example/token",service="reg",scope="repository:a/b:pull,push""#;
        let expected = bearer(
            "https://auth.example/token",
            Some("reg"),
            Some("repository:a/b:pull,push"),
        );
        assert_eq!(read(&[header]), expected);
    }

    #[test]
    fn spaces_case_order_and_escapes_do_not_matter() {
        let header = r#"bEARER  Service=reg , REALM = "https://a/\"b\"" "#;
        assert_eq!(
            read(&[header]),
            bearer(r#"https://a/"b""#, Some("reg"), None)
        );
        assert_eq!(
            read(&["Bearer realm=https://a/t"]),
            bearer("https://a/t", None, None)
        );
    }

    #[test]
    fn a_token_is_preferred_to_a_password() {
        let offered = [r#"Basic realm="x""#, r#"Bearer realm="https://a/""#];
        assert_eq!(read(&offered), bearer("https://a/", None, None));
        let in_one = r#"Basic realm="x", Bearer realm="https://a/""#;
        assert_eq!(read(&[in_one]), bearer("https://a/", None, None));
    }

    #[test]
    fn a_password_is_better_than_nothing() {
        assert_eq!(read(&[r#"Basic realm="x""#]), Some(Challenge::Basic));
        assert_eq!(read(&["Negotiate, basic"]), Some(Challenge::Basic));
    }

    #[test]
    fn what_is_not_understood_offers_nothing() {
        let long = format!(r#"Bearer realm="{}""#, "a".repeat(HEADER_BYTES_MAX));
        for header in [
            "",
            "Bearer",
            "Bearer service=x",
            r#"Bearer realm="https://a"#,
            r#"Bearer realm="https://a\"#,
            "=x",
            "Negotiate abc",
            &long,
        ] {
            assert_eq!(read(&[header]), None, "{header}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_to_an_end(header in "[ -~\t]{0,200}") {
            let _ = read(&[&header]);
        }
    }
}
