//! Fetching a URL that a model chose (C7.5).
//!
//! All addresses of a host are checked before the connection goes to one of them, and every redirect is
//! judged like the first URL.

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

/// The maximum number of redirects. Browsers follow more, but real pages need fewer.
const MOST_REDIRECTS: usize = 5;

/// The longest URL in an error message, in bytes.
const MAX_SHOWN_URL: usize = 300;

/// The policy and the limits of a fetch.
pub struct FetchContext<'f> {
    /// The policy that redirects are judged by.
    pub policy: &'f GatePolicy,
    pub resolver: &'f dyn NameResolver,
    pub cancel: &'f CancelFlag,
    /// The time for everything together: names, connections, redirects and bodies.
    pub timeout: Duration,
    /// The most bytes of a body that are read.
    pub max_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchRequest<'o> {
    pub method: HttpMethod,
    pub url: &'o str,
    /// The body and its media type, for [`HttpMethod::Post`].
    pub body: Option<(&'o str, &'o str)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// The URL after all redirects.
    pub url: String,
    pub status: u16,
    /// The media type that the server reported.
    pub content_type: Option<String>,
    pub body: FetchedBody,
}

/// The body of a fetched page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedBody {
    /// The whole text.
    Whole(String),
    /// The beginning of a longer text.
    Truncated(String),
    /// A body that isn't text, and was not read.
    NotText {
        /// The length that the server announced.
        length: Option<u64>,
    },
}

/// The reason why a fetch failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL is invalid, or the policy denies it.
    #[error("{0}")]
    Refused(String),
    /// The host has an address of this machine or its network.
    #[error("`{host}` resolves to {number}, an address of this machine or of its network")]
    Private { host: String, number: IpAddr },
    /// The gate doesn't allow a redirect's target.
    #[error("could not follow the redirect to {to}: {reason}")]
    Redirect { to: String, reason: String },
    #[error("too many redirects (more than {MOST_REDIRECTS})")]
    TooManyRedirects,
    /// The server is unreachable, or the connection broke.
    #[error("{0}")]
    Network(String),
    #[error("{0}")]
    Stopped(WaitError),
}

impl FetchContext<'_> {
    /// Fetches a URL and follows redirects as far as the gate would allow the same call.
    ///
    /// # Errors
    /// Fails with the reason why the URL could not be fetched.
    pub fn run(&self, request: &FetchRequest<'_>) -> Result<FetchResponse, FetchError> {
        let deadline = CancellableDeadline::new(self.cancel, self.timeout);
        let mut url = RequestUrl::parse(request.url).map_err(|what| FetchError::Refused(what.to_owned()))?;
        let (mut method, mut body) = (request.method, request.body);
        let granted = match judge(GateRequest::Http(method, &url.to_string()), self.policy, &NoFiles) {
            GateOutcome::Denied(verdict) => return Err(FetchError::Refused(first_reason(&verdict))),
            outcome => outcome.verdict().clone(),
        };
        for _ in 0..=MOST_REDIRECTS {
            let answer = self.send_once(&url, method, body, &deadline)?;
            let Some(location) = redirect_location(&answer) else { return self.read_response(&url, answer) };
            let refused = |to: &str, reason: String| FetchError::Redirect {
                to: truncate_text(to, MAX_SHOWN_URL),
                reason,
            };
            let next = url.resolve_location(&location).map_err(|what| refused(&location, what.to_owned()))?;
            if drops_body(answer.status) {
                (method, body) = (HttpMethod::Get, None);
            }
            self.check_redirect(&url, &next, method, &granted)
                .map_err(|reason| refused(&next.to_string(), reason))?;
            url = next;
        }
        Err(FetchError::TooManyRedirects)
    }

    fn send_once(
        &self,
        url: &RequestUrl,
        method: HttpMethod,
        body: Option<(&str, &str)>,
        deadline: &CancellableDeadline,
    ) -> Result<HttpResponse, FetchError> {
        let addresses = url.resolve_addresses(self.resolver, deadline).map_err(|error| match error {
            ResolveError::Stopped(stopped) => FetchError::Stopped(stopped),
            ResolveError::NotFound { .. } => FetchError::Network(error.to_string()),
        })?;
        let host = url.address.host.to_string();
        if !self.is_listed_host(url)
            && let Some(ip) = addresses.iter().find(|ip| !is_public(**ip))
        {
            return Err(FetchError::Private { host, number: *ip });
        }
        let accept = ("accept", "text/*, application/json, application/xml;q=0.9, */*;q=0.5");
        let typed = body.map(|(_, content_type)| ("content-type", content_type));
        let headers: Vec<_> = std::iter::once(accept).chain(typed).collect();
        let body = body.map_or("", |(body, _)| body);
        let request = HttpRequest { method, url, addresses: &addresses, headers: &headers, body };
        send_request(&request, deadline).map_err(|error| fetch_error(error, url))
    }

    /// Returns true if the operator listed exactly this host and port. As in the gate, a listed host may be
    /// on the local network.
    fn is_listed_host(&self, url: &RequestUrl) -> bool {
        self.policy.allowed_domains.contains(&url.address.host_and_port())
    }

    /// Checks a redirect. A redirect is followed if the policy alone would allow the call with no more risk
    /// than the first URL, or if its verdict is the same as the one that was approved.
    fn check_redirect(
        &self,
        from: &RequestUrl,
        to: &RequestUrl,
        method: HttpMethod,
        granted: &GateVerdict,
    ) -> Result<(), String> {
        if from.address.scheme == UrlScheme::Https && to.address.scheme == UrlScheme::Http {
            return Err("it leads from an encrypted to an unencrypted connection".to_owned());
        }
        match judge(GateRequest::Http(method, &to.to_string()), self.policy, &NoFiles) {
            GateOutcome::Allowed(permit) if permit.verdict().risk <= granted.risk => Ok(()),
            outcome if outcome.verdict() == granted => Ok(()),
            GateOutcome::Denied(verdict) => Err(first_reason(&verdict)),
            GateOutcome::NeedsApproval(question) => {
                Err(format!("{}; request that address directly", first_reason(&question.refuse())))
            }
            GateOutcome::Allowed(permit) => {
                Err(format!("{}; request that address directly", first_reason(permit.verdict())))
            }
        }
    }

    fn read_response(&self, url: &RequestUrl, answer: HttpResponse) -> Result<FetchResponse, FetchError> {
        let (status, content_type) = (answer.status, answer.content_type());
        let length = answer.content_length();
        let is_binary_type = content_type.as_deref().is_some_and(|kind| !text_body::is_text(kind));
        let body = if is_binary_type {
            FetchedBody::NotText { length }
        } else {
            let bytes = answer.read(self.max_bytes).map_err(|error| fetch_error(error, url))?;
            if content_type.is_none() && !text_body::looks_like_text(&bytes) {
                FetchedBody::NotText { length }
            } else if bytes.len() > self.max_bytes {
                FetchedBody::Truncated(text_body::truncate_lossy(bytes, self.max_bytes))
            } else {
                FetchedBody::Whole(text_body::truncate_lossy(bytes, self.max_bytes))
            }
        };
        Ok(FetchResponse { url: url.to_string(), status, content_type, body })
    }
}

fn redirect_location(answer: &HttpResponse) -> Option<String> {
    matches!(answer.status, 301 | 302 | 303 | 307 | 308)
        .then(|| answer.header("location").map(str::to_owned))?
}

/// Returns true if the redirect turns a POST into a GET without a body, as browsers do.
fn drops_body(status: u16) -> bool {
    matches!(status, 301..=303)
}

fn fetch_error(error: ExchangeError, url: &RequestUrl) -> FetchError {
    match error {
        ExchangeError::Stopped(stopped) => FetchError::Stopped(stopped),
        ExchangeError::ConnectionRefused => {
            FetchError::Network(format!("connection refused at {}", url.origin()))
        }
        ExchangeError::Stalled => FetchError::Network("the server stopped sending".to_owned()),
        ExchangeError::Failed(what) => FetchError::Network(what),
    }
}

pub(super) fn first_reason(verdict: &GateVerdict) -> String {
    verdict.reasons.first().map(collieclaw_gate::GateReason::detail).unwrap_or_default()
}

/// Machine facts without files: the gate needs none to judge a URL.
pub(super) struct NoFiles;

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
            command_network: Default::default(),
            pinned_programs: Default::default(),
            allowed_scripts: Default::default(),
            project_programs: Default::default(),
            command_cache: None,
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
            Err("it leads from an encrypted to an unencrypted connection".to_owned())
        );
    }
}
