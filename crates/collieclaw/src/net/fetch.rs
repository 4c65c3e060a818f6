//! Asking for an address that a model chose (C7.5).
//!
//! Every number that a name stands for is looked at before the connection goes to one of them, and every redirect is
//! judged like the first address.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collieclaw_gate::{Call, Facts, GatePolicy, Method, Ruling, Scheme, Seen, Verdict, is_public, judge};

use super::exchange::{Answer, Ask, Broken, ask};
use super::link::Link;
use super::lookup::{Lookup, LookupError};
use super::patience::{Patience, Stopped};
use super::text;
use crate::cancel::Cancel;
use crate::tools::shortened;

/// Browsers follow more; honest pages need fewer.
const MOST_REDIRECTS: usize = 5;

/// How much of an address is told.
const LONGEST_SHOWN: usize = 300;

/// Who asks, and within which bounds.
pub struct Fetch<'f> {
    /// What redirects are judged by.
    pub policy: &'f GatePolicy,
    /// Who knows the numbers.
    pub lookup: &'f dyn Lookup,
    /// Raised when it is to end at once.
    pub cancel: &'f Cancel,
    /// For everything together: names, connections, redirects and bodies.
    pub timeout: Duration,
    /// How much of a body is read.
    pub most_bytes: usize,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order<'o> {
    /// How.
    pub method: Method,
    /// Where.
    pub url: &'o str,
    /// What is sent, with its type; for [`Method::Post`].
    pub body: Option<(&'o str, &'o str)>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// From where, after all redirects.
    pub url: String,
    /// Such as 200.
    pub status: u16,
    /// What the server says it is.
    pub content_type: Option<String>,
    /// What it is.
    pub body: Body,
}

/// What a reply holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text, all of it.
    Whole(String),
    /// The beginning of a longer text.
    Cut(String),
    /// No text. It was not read.
    Other {
        /// How long the server says it is.
        length: Option<u64>,
    },
}

/// Why nothing came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// It can't be read, or a rule refuses it.
    #[error("{0}")]
    Refused(String),
    /// A name stands for a number of this machine or of its network.
    #[error("`{host}` stands for {number}, an address of this machine or of its network")]
    Private {
        /// The name.
        host: String,
        /// The number.
        number: IpAddr,
    },
    /// A redirect to a place where it may not go.
    #[error("it redirects to {to}, and that is not followed: {reason}")]
    Redirect {
        /// Where it leads.
        to: String,
        /// Why not.
        reason: String,
    },
    /// Redirects without an end.
    #[error("it redirects more than {MOST_REDIRECTS} times")]
    TooManyRedirects,
    /// It can't be reached, or the connection broke.
    #[error("{0}")]
    Network(String),
    /// The waiting is over.
    #[error("{0}")]
    Stopped(Stopped),
}

impl Fetch<'_> {
    /// Asks, and follows redirects as far as the gate would let the same call go.
    ///
    /// # Errors
    /// With what is in the way.
    pub fn run(&self, order: &Order<'_>) -> Result<Fetched, FetchError> {
        let patience = Patience::new(self.cancel, self.timeout);
        let mut link = Link::read(order.url).map_err(|what| FetchError::Refused(what.to_owned()))?;
        let (mut method, mut body) = (order.method, order.body);
        let granted = match judge(Call::Http(method, &link.to_string()), self.policy, &NoFiles) {
            Ruling::Denied(verdict) => return Err(FetchError::Refused(first_reason(&verdict))),
            ruling => ruling.verdict().clone(),
        };
        for _ in 0..=MOST_REDIRECTS {
            let answer = self.ask_once(&link, method, body, &patience)?;
            let Some(location) = redirect(&answer) else { return self.fetched(&link, answer) };
            let refused =
                |to: &str, reason: String| FetchError::Redirect { to: shortened(to, LONGEST_SHOWN), reason };
            let next = link.follow(&location).map_err(|what| refused(&location, what.to_owned()))?;
            if keeps_no_body(answer.status) {
                (method, body) = (Method::Get, None);
            }
            self.may_follow(&link, &next, method, &granted)
                .map_err(|reason| refused(&next.to_string(), reason))?;
            link = next;
        }
        Err(FetchError::TooManyRedirects)
    }

    fn ask_once(
        &self,
        link: &Link,
        method: Method,
        body: Option<(&str, &str)>,
        patience: &Patience,
    ) -> Result<Answer, FetchError> {
        let numbers = link.numbers(self.lookup, patience).map_err(|error| match error {
            LookupError::Stopped(stopped) => FetchError::Stopped(stopped),
            LookupError::NotFound { .. } => FetchError::Network(error.to_string()),
        })?;
        let host = link.address.host.to_string();
        if !self.leads_where_it_may(link)
            && let Some(number) = numbers.iter().find(|number| !is_public(**number))
        {
            return Err(FetchError::Private { host, number: *number });
        }
        let accept = ("accept", "text/*, application/json, application/xml;q=0.9, */*;q=0.5");
        let typed = body.map(|(_, content_type)| ("content-type", content_type));
        let headers: Vec<_> = std::iter::once(accept).chain(typed).collect();
        let body = body.map_or("", |(body, _)| body);
        let order = Ask { method, link, numbers: &numbers, headers: &headers, body };
        ask(&order, patience).map_err(|broken| failed(broken, link))
    }

    /// Whether the operator listed exactly this host and port; as in the gate, it may then be a neighbour.
    fn leads_where_it_may(&self, link: &Link) -> bool {
        self.policy.allowed_domains.contains(&link.address.host_and_port())
    }

    /// A redirect is followed where the rules alone would let the call go, with no more risk than the first; or within
    /// what was already agreed to.
    fn may_follow(&self, from: &Link, to: &Link, method: Method, granted: &Verdict) -> Result<(), String> {
        if from.address.scheme == Scheme::Https && to.address.scheme == Scheme::Http {
            return Err("it leads from an encrypted connection to one in the clear".to_owned());
        }
        match judge(Call::Http(method, &to.to_string()), self.policy, &NoFiles) {
            Ruling::Allowed(permit) if permit.verdict().risk <= granted.risk => Ok(()),
            ruling if ruling.verdict() == granted => Ok(()),
            Ruling::Denied(verdict) => Err(first_reason(&verdict)),
            Ruling::Asks(question) => {
                Err(format!("{}; ask for that address itself", first_reason(&question.refuse())))
            }
            Ruling::Allowed(permit) => {
                Err(format!("{}; ask for that address itself", first_reason(permit.verdict())))
            }
        }
    }

    fn fetched(&self, link: &Link, answer: Answer) -> Result<Fetched, FetchError> {
        let (status, content_type) = (answer.status, answer.content_type());
        let length = answer.content_length();
        let known_as_other = content_type.as_deref().is_some_and(|kind| !text::is_text(kind));
        let body = if known_as_other {
            Body::Other { length }
        } else {
            let bytes = answer.read(self.most_bytes).map_err(|broken| failed(broken, link))?;
            if content_type.is_none() && !text::looks_like_text(&bytes) {
                Body::Other { length }
            } else if bytes.len() > self.most_bytes {
                Body::Cut(text::lossy(bytes, self.most_bytes))
            } else {
                Body::Whole(text::lossy(bytes, self.most_bytes))
            }
        };
        Ok(Fetched { url: link.to_string(), status, content_type, body })
    }
}

fn redirect(answer: &Answer) -> Option<String> {
    matches!(answer.status, 301 | 302 | 303 | 307 | 308)
        .then(|| answer.header("location").map(str::to_owned))?
}

/// What was sent is sent again only where the server says so outright, as browsers do.
fn keeps_no_body(status: u16) -> bool {
    matches!(status, 301..=303)
}

fn failed(broken: Broken, link: &Link) -> FetchError {
    match broken {
        Broken::Stopped(stopped) => FetchError::Stopped(stopped),
        Broken::NobodyListens => FetchError::Network(format!("nobody listens at {}", link.origin())),
        Broken::Silent => FetchError::Network("nothing came for too long".to_owned()),
        Broken::Failed(what) => FetchError::Network(what),
    }
}

fn first_reason(verdict: &Verdict) -> String {
    verdict.reasons.first().map(collieclaw_gate::Reason::detail).unwrap_or_default()
}

/// The gate asks nothing about files when it judges an address.
struct NoFiles;

impl Facts for NoFiles {
    fn look(&self, _: &Path) -> Seen {
        Seen::Unreachable
    }

    fn names_in(&self, _: &Path) -> Option<Vec<String>> {
        None
    }

    fn program(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::SystemLookup;
    use collieclaw_gate::{Autonomy, Bounds, Risk};

    #[test]
    fn a_redirect_never_leads_out_of_encryption() {
        let policy = GatePolicy {
            autonomy: Autonomy::Full,
            workspace: PathBuf::new(),
            bounds: Bounds::Workspace,
            user_home: PathBuf::new(),
            own_home: PathBuf::new(),
            own_files: Vec::new(),
            forbidden_paths: Vec::new(),
            forbidden_commands: std::collections::BTreeSet::new(),
            allowed_commands: std::collections::BTreeSet::new(),
            allowed_domains: vec!["a.example".to_owned()],
        };
        let cancel = Cancel::new().unwrap();
        let timeout = Duration::from_secs(1);
        let fetch = Fetch { policy: &policy, lookup: &SystemLookup, cancel: &cancel, timeout, most_bytes: 1 };
        let granted =
            Verdict { decision: collieclaw_gate::Decision::Allow, risk: Risk::Low, reasons: Vec::new() };
        let follow = |from: &str, to: &str| {
            let (from, to) = (Link::read(from).unwrap(), Link::read(to).unwrap());
            fetch.may_follow(&from, &to, Method::Get, &granted)
        };
        assert_eq!(follow("http://a.example/", "https://a.example/"), Ok(()));
        assert_eq!(follow("https://a.example/", "https://a.example/x"), Ok(()));
        assert_eq!(
            follow("https://a.example/", "http://a.example/"),
            Err("it leads from an encrypted connection to one in the clear".to_owned())
        );
    }
}
