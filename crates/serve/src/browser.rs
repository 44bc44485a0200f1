//! [`SiteGuard`]: requests that a web page makes a browser send. Where anybody of the machine may use the server, a page of
//! another site may not: it has not been asked, and the browser is only its messenger.

use crate::error::{Error, Result};
use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;

/// What browsers are let through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SiteGuard {
    /// Whether the server is for this machine alone. Then a name that is not the machine's own stands for it by a trick: a site
    /// had its name lead here, and its pages would be of the server's own site.
    pub(crate) is_for_this_machine: bool,
}

impl SiteGuard {
    /// Whether a request may go on.
    ///
    /// # Errors
    /// [`Error::Forbidden`]
    pub(crate) fn check(self, headers: &HeaderMap) -> Result<()> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin.to_str().unwrap_or_default();
            let site = origin.split_once("://").map(|(_, site)| site);
            let is_own = site.zip(host).is_some_and(|(site, host)| site.eq_ignore_ascii_case(host));
            if !is_own {
                return Err(Error::Forbidden(
                    "the request is a web page's of another site: give clients a token (--token-file)",
                ));
            }
        }
        if let Some(host) = host.filter(|_| self.is_for_this_machine)
            && !is_of_this_machine(host)
        {
            return Err(Error::Forbidden(
                "the server is for this machine, and the request for another host's name: give clients a token \
                 (--token-file), or say that anybody may use the server (--allow-anybody)",
            ));
        }
        Ok(())
    }
}

/// Whether a host is an address, or a name that never leads to another machine.
fn is_of_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    address.parse::<std::net::IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_through(guard: SiteGuard, host: &str, origin: &str) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if !value.is_empty() {
                headers.insert(name, value.parse().unwrap());
            }
        }
        guard.check(&headers).is_ok()
    }

    #[test]
    fn pages_of_other_sites_may_not_use_the_server() {
        for is_for_this_machine in [false, true] {
            let guard = SiteGuard { is_for_this_machine };
            for (host, origin, expected) in [
                ("127.0.0.1:8000", "", true),
                ("", "", true),
                ("127.0.0.1:8000", "http://127.0.0.1:8000", true),
                ("LocalHost:8000", "http://localhost:8000", true),
                ("127.0.0.1:8000", "http://127.0.0.1:9000", false),
                ("127.0.0.1:8000", "http://evil.example", false),
                ("127.0.0.1:8000", "null", false),
                ("", "http://evil.example", false),
            ] {
                assert_eq!(is_let_through(guard, host, origin), expected, "{host:?} {origin:?}");
            }
        }
    }

    #[test]
    fn a_name_that_was_made_to_lead_here_is_refused_where_the_server_is_for_the_machine() {
        let [everywhere, here] =
            [false, true].map(|is_for_this_machine| SiteGuard { is_for_this_machine });
        for host in ["evil.example", "evil.example:8000", "localhost.evil.example", "a b"] {
            assert!(!is_let_through(here, host, ""), "{host}");
        }
        for host in ["[::1]:8000", "192.168.0.7", "localhost", "models.localhost:1"] {
            assert!(is_let_through(here, host, ""), "{host}");
        }
        assert!(is_let_through(everywhere, "models.example", "https://models.example"));
        assert!(!is_let_through(here, "evil.example:8000", "http://evil.example:8000"));
    }
}
