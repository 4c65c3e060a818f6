//! Asking for an address that a model chose (C7.5).
//!
//! Every number that a name stands for is looked at before the connection goes to one of them, and every redirect is
//! judged like the first address.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use collieclaw_gate::{
    GateOutcome, GatePolicy, GateRequest, GateVerdict, HttpMethod, MachineFacts, PathStatus, UrlScheme,
    is_public, judge,
};

use super::deadline::{CancellableDeadline, WaitError};
use super::exchange::{ExchangeError, HttpRequest, HttpResponse, send_request};
use super::resolver::{NameResolver, ResolveError};
use super::text_body;
use super::url::RequestUrl;
use crate::cancel::CancelFlag;
use crate::text::truncate_text;

/// Browsers follow more; honest pages need fewer.
const MOST_REDIRECTS: usize = 5;

/// How much of an address is told.
const MAX_SHOWN_URL: usize = 300;

/// Who asks, and within which bounds.
pub struct FetchContext<'f> {
    /// What redirects are judged by.
    pub policy: &'f GatePolicy,
    /// Who knows the numbers.
    pub resolver: &'f dyn NameResolver,
    /// Raised when it is to end at once.
    pub cancel: &'f CancelFlag,
    /// For everything together: names, connections, redirects and bodies.
    pub timeout: Duration,
    /// How much of a body is read.
    pub max_bytes: usize,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchRequest<'o> {
    /// How.
    pub method: HttpMethod,
    /// Where.
    pub url: &'o str,
    /// What is sent, with its type; for [`Method::Post`].
    pub body: Option<(&'o str, &'o str)>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// From where, after all redirects.
    pub url: String,
    /// Such as 200.
    pub status: u16,
    /// What the server says it is.
    pub content_type: Option<String>,
    /// What it is.
    pub body: FetchedBody,
}

/// What a reply holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedBody {
    /// Text, all of it.
    Whole(String),
    /// The beginning of a longer text.
    Truncated(String),
    /// No text. It was not read.
    NotText {
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
    Stopped(WaitError),
}

impl FetchContext<'_> {
    /// Asks, and follows redirects as far as the gate would let the same call go.
    ///
    /// # Errors
    /// With what is in the way.
    pub fn run(&self, order: &FetchRequest<'_>) -> Result<FetchResponse, FetchError> {
        let patience = CancellableDeadline::new(self.cancel, self.timeout);
        let mut link = RequestUrl::parse(order.url).map_err(|what| FetchError::Refused(what.to_owned()))?;
        let (mut method, mut body) = (order.method, order.body);
        let granted = match judge(GateRequest::Http(method, &link.to_string()), self.policy, &NoFiles) {
            GateOutcome::Denied(verdict) => return Err(FetchError::Refused(first_reason(&verdict))),
            ruling => ruling.verdict().clone(),
        };
        for _ in 0..=MOST_REDIRECTS {
            let answer = self.send_once(&link, method, body, &patience)?;
            let Some(location) = redirect_location(&answer) else { return self.read_response(&link, answer) };
            let refused = |to: &str, reason: String| FetchError::Redirect {
                to: truncate_text(to, MAX_SHOWN_URL),
                reason,
            };
            let next =
                link.resolve_location(&location).map_err(|what| refused(&location, what.to_owned()))?;
            if drops_body(answer.status) {
                (method, body) = (HttpMethod::Get, None);
            }
            self.check_redirect(&link, &next, method, &granted)
                .map_err(|reason| refused(&next.to_string(), reason))?;
            link = next;
        }
        Err(FetchError::TooManyRedirects)
    }

    fn send_once(
        &self,
        link: &RequestUrl,
        method: HttpMethod,
        body: Option<(&str, &str)>,
        patience: &CancellableDeadline,
    ) -> Result<HttpResponse, FetchError> {
        let numbers = link.resolve_addresses(self.resolver, patience).map_err(|error| match error {
            ResolveError::Stopped(stopped) => FetchError::Stopped(stopped),
            ResolveError::NotFound { .. } => FetchError::Network(error.to_string()),
        })?;
        let host = link.address.host.to_string();
        if !self.is_listed_host(link)
            && let Some(number) = numbers.iter().find(|number| !is_public(**number))
        {
            return Err(FetchError::Private { host, number: *number });
        }
        let accept = ("accept", "text/*, application/json, application/xml;q=0.9, */*;q=0.5");
        let typed = body.map(|(_, content_type)| ("content-type", content_type));
        let headers: Vec<_> = std::iter::once(accept).chain(typed).collect();
        let body = body.map_or("", |(body, _)| body);
        let order = HttpRequest { method, url: link, addresses: &numbers, headers: &headers, body };
        send_request(&order, patience).map_err(|broken| fetch_error(broken, link))
    }

    /// Whether the operator listed exactly this host and port; as in the gate, it may then be a neighbour.
    fn is_listed_host(&self, link: &RequestUrl) -> bool {
        self.policy.allowed_domains.contains(&link.address.host_and_port())
    }

    /// A redirect is followed where the rules alone would let the call go, with no more risk than the first; or within
    /// what was already agreed to.
    fn check_redirect(
        &self,
        from: &RequestUrl,
        to: &RequestUrl,
        method: HttpMethod,
        granted: &GateVerdict,
    ) -> Result<(), String> {
        if from.address.scheme == UrlScheme::Https && to.address.scheme == UrlScheme::Http {
            return Err("it leads from an encrypted connection to one in the clear".to_owned());
        }
        match judge(GateRequest::Http(method, &to.to_string()), self.policy, &NoFiles) {
            GateOutcome::Allowed(permit) if permit.verdict().risk <= granted.risk => Ok(()),
            ruling if ruling.verdict() == granted => Ok(()),
            GateOutcome::Denied(verdict) => Err(first_reason(&verdict)),
            GateOutcome::NeedsApproval(question) => {
                Err(format!("{}; ask for that address itself", first_reason(&question.refuse())))
            }
            GateOutcome::Allowed(permit) => {
                Err(format!("{}; ask for that address itself", first_reason(permit.verdict())))
            }
        }
    }

    fn read_response(&self, link: &RequestUrl, answer: HttpResponse) -> Result<FetchResponse, FetchError> {
        let (status, content_type) = (answer.status, answer.content_type());
        let length = answer.content_length();
        let known_as_other = content_type.as_deref().is_some_and(|kind| !text_body::is_text(kind));
        let body = if known_as_other {
            FetchedBody::NotText { length }
        } else {
            let bytes = answer.read(self.max_bytes).map_err(|broken| fetch_error(broken, link))?;
            if content_type.is_none() && !text_body::looks_like_text(&bytes) {
                FetchedBody::NotText { length }
            } else if bytes.len() > self.max_bytes {
                FetchedBody::Truncated(text_body::truncate_lossy(bytes, self.max_bytes))
            } else {
                FetchedBody::Whole(text_body::truncate_lossy(bytes, self.max_bytes))
            }
        };
        Ok(FetchResponse { url: link.to_string(), status, content_type, body })
    }
}

fn redirect_location(answer: &HttpResponse) -> Option<String> {
    matches!(answer.status, 301 | 302 | 303 | 307 | 308)
        .then(|| answer.header("location").map(str::to_owned))?
}

/// What was sent is sent again only where the server says so outright, as browsers do.
fn drops_body(status: u16) -> bool {
    matches!(status, 301..=303)
}

fn fetch_error(broken: ExchangeError, link: &RequestUrl) -> FetchError {
    match broken {
        ExchangeError::Stopped(stopped) => FetchError::Stopped(stopped),
        ExchangeError::ConnectionRefused => {
            FetchError::Network(format!("nobody listens at {}", link.origin()))
        }
        ExchangeError::Stalled => FetchError::Network("nothing came for too long".to_owned()),
        ExchangeError::Failed(what) => FetchError::Network(what),
    }
}

fn first_reason(verdict: &GateVerdict) -> String {
    verdict.reasons.first().map(collieclaw_gate::GateReason::detail).unwrap_or_default()
}

/// The gate asks nothing about files when it judges an address.
struct NoFiles;

impl MachineFacts for NoFiles {
    fn inspect_path(&self, _: &Path) -> PathStatus {
        PathStatus::Unreachable
    }

    fn names_in(&self, _: &Path) -> Option<Vec<String>> {
        None
    }

    fn find_program(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::SystemResolver;
    use collieclaw_gate::{AutonomyLevel, PathBounds, RiskLevel};

    #[test]
    fn a_redirect_never_leads_out_of_encryption() {
        let policy = GatePolicy {
            autonomy: AutonomyLevel::Full,
            workspace: PathBuf::new(),
            bounds: PathBounds::Workspace,
            user_home: PathBuf::new(),
            own_home: PathBuf::new(),
            own_files: Vec::new(),
            forbidden_paths: Vec::new(),
            forbidden_commands: std::collections::BTreeSet::new(),
            allowed_commands: std::collections::BTreeSet::new(),
            allowed_domains: vec!["a.example".to_owned()],
        };
        let cancel = CancelFlag::new().unwrap();
        let timeout = Duration::from_secs(1);
        let fetch = FetchContext {
            policy: &policy,
            resolver: &SystemResolver,
            cancel: &cancel,
            timeout,
            max_bytes: 1,
        };
        let granted = GateVerdict {
            decision: collieclaw_gate::GateDecision::Allow,
            risk: RiskLevel::Low,
            reasons: Vec::new(),
        };
        let follow = |from: &str, to: &str| {
            let (from, to) = (RequestUrl::parse(from).unwrap(), RequestUrl::parse(to).unwrap());
            fetch.check_redirect(&from, &to, HttpMethod::Get, &granted)
        };
        assert_eq!(follow("http://a.example/", "https://a.example/"), Ok(()));
        assert_eq!(follow("https://a.example/", "https://a.example/x"), Ok(()));
        assert_eq!(
            follow("https://a.example/", "http://a.example/"),
            Err("it leads from an encrypted connection to one in the clear".to_owned())
        );
    }
}
