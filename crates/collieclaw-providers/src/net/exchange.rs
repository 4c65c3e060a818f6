//! One request, one reply.

#[cfg(test)]
mod tls_tests;

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use collieclaw_gate::{HttpMethod, UrlHost};
use ureq::config::{AutoHeaderValue, Config};
use ureq::http::{HeaderMap, Request, Response, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::{Connector, RustlsConnector};

use super::deadline::{CancellableDeadline, WaitError};
use super::resolver::{NameResolver, ResolveError};
use super::transport::{DeadlineConnector, ResolvedAddresses, StalledError};
use super::url::RequestUrl;

/// Headers are for programs; more than this is an attack on memory.
const LONGEST_HEADERS: usize = 64 * 1024;

/// No type has a longer name; what has is nothing that a model should read (RFC 6838, 4.2).
const LONGEST_TYPE: usize = 255;

/// What is asked for.
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: HttpMethod,
    pub(crate) url: &'a RequestUrl,
    /// The numbers that the host stands for, already looked at.
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

/// What came back, its body still to be read.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    headers: HeaderMap,
    body: ureq::Body,
    deadline: CancellableDeadline,
}

/// Why there is no answer. Never holds what was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExchangeError {
    /// The waiting is over.
    Stopped(WaitError),
    /// Nobody listens there.
    ConnectionRefused,
    /// The reply has begun, and nothing more came for too long.
    Stalled,
    /// Anything else, as a sentence without a full stop.
    Failed(String),
}

impl RequestUrl {
    /// The numbers that the host stands for.
    pub(crate) fn resolve_addresses(
        &self,
        lookup: &dyn NameResolver,
        patience: &CancellableDeadline,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        match &self.address.host {
            UrlHost::Ip(number) => Ok(vec![*number]),
            UrlHost::Name(name) => {
                let numbers = lookup.resolve(name, patience)?;
                if numbers.is_empty() {
                    let detail = "it has no number".to_owned();
                    return Err(ResolveError::NotFound { name: name.clone(), detail });
                }
                Ok(numbers)
            }
        }
    }
}

/// Sends a request and waits for the beginning of the reply.
pub(crate) fn send_request(
    ask: &HttpRequest<'_>,
    patience: &CancellableDeadline,
) -> Result<HttpResponse, ExchangeError> {
    send_with_roots(ask, patience, RootCerts::WebPki)
}

fn send_with_roots(
    ask: &HttpRequest<'_>,
    patience: &CancellableDeadline,
    trusted: RootCerts,
) -> Result<HttpResponse, ExchangeError> {
    let port = ask.url.address.port;
    let addresses = ask.addresses.iter().map(|number| SocketAddr::new(*number, port)).collect();
    let connector = DeadlineConnector(patience.clone()).chain(RustlsConnector::default());
    let agent = ureq::Agent::with_parts(config(trusted), connector, ResolvedAddresses(addresses));
    let mut request = Request::builder().uri(ask.url.to_string());
    for (name, value) in ask.headers {
        request = request.header(*name, *value);
    }
    let sent = match ask.method {
        HttpMethod::Get => {
            request.method("GET").body(()).map_err(ureq::Error::from).and_then(|it| agent.run(it))
        }
        HttpMethod::Post => {
            request.method("POST").body(ask.body).map_err(ureq::Error::from).and_then(|it| agent.run(it))
        }
    };
    let response: Response<ureq::Body> = sent.map_err(|error| exchange_error(error, patience))?;
    let (parts, body) = response.into_parts();
    Ok(HttpResponse {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
        deadline: patience.clone(),
    })
}

fn config(trusted: RootCerts) -> Config {
    let tls = TlsConfig::builder()
        .root_certs(trusted)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Config::builder()
        .tls_config(tls)
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(0)
        .max_response_header_size(LONGEST_HEADERS)
        .accept_encoding(AutoHeaderValue::from("identity"))
        .user_agent(AutoHeaderValue::from(concat!("collieclaw/", env!("CARGO_PKG_VERSION"))))
        .build()
}

impl HttpResponse {
    /// A header, if it is there and can be read.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// What the body is said to be, in lower case, without parameters.
    pub(crate) fn content_type(&self) -> Option<String> {
        let value = self.header(header::CONTENT_TYPE.as_str())?;
        let kind = value.split(';').next().unwrap_or_default().trim();
        let is_one = !kind.is_empty() && kind.len() <= LONGEST_TYPE;
        is_one.then(|| kind.to_ascii_lowercase())
    }

    /// How long the body is said to be.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.body.content_length()
    }

    /// Reads the body, but at most so many bytes and one, which tells that there is more.
    pub(crate) fn read(self, most: usize) -> Result<Vec<u8>, ExchangeError> {
        self.into_body_stream().read_rest(most)
    }

    /// The body as it comes.
    pub(crate) fn into_body_stream(self) -> BodyStream {
        BodyStream { reader: self.body.into_reader(), deadline: self.deadline }
    }
}

/// A body that is read as it comes.
pub(crate) struct BodyStream {
    reader: ureq::BodyReader<'static>,
    deadline: CancellableDeadline,
}

impl BodyStream {
    /// Waits for more and puts it into `buffer`; none is the end.
    pub(crate) fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, ExchangeError> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => {
                    return read.map_err(|error| exchange_error(ureq::Error::from(error), &self.deadline));
                }
            }
        }
    }

    /// All that is left, but at most so many bytes and one, which tells that there is more.
    pub(crate) fn read_rest(self, most: usize) -> Result<Vec<u8>, ExchangeError> {
        let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        let read = self.reader.take(most).read_to_end(&mut bytes);
        read.map_err(|error| exchange_error(ureq::Error::from(error), &self.deadline))?;
        Ok(bytes)
    }

    /// From now on a silence that is longer is an error.
    pub(crate) fn set_stall_timeout(&self, silence: Duration) {
        self.deadline.set_stall_timeout(silence);
    }
}

/// What an error means to people. Errors of the library never hold headers or bodies.
fn exchange_error(error: ureq::Error, patience: &CancellableDeadline) -> ExchangeError {
    if let Err(stopped) = patience.remaining() {
        return ExchangeError::Stopped(stopped);
    }
    ExchangeError::Failed(match error {
        ureq::Error::Io(error) => match error.kind() {
            _ if error.get_ref().and_then(|inner| inner.downcast_ref::<StalledError>()).is_some() => {
                return ExchangeError::Stalled;
            }
            std::io::ErrorKind::ConnectionRefused => return ExchangeError::ConnectionRefused,
            std::io::ErrorKind::TimedOut => return ExchangeError::Stopped(WaitError::TimedOut),
            std::io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
            std::io::ErrorKind::UnexpectedEof => {
                "the connection was closed in the middle of the reply".to_owned()
            }
            _ => error.to_string(),
        },
        ureq::Error::Protocol(error) => format!("the reply is not proper HTTP: {error}"),
        ureq::Error::LargeResponseHeader(..) => {
            format!("the reply has more than {LONGEST_HEADERS} bytes of headers")
        }
        ureq::Error::Rustls(error) => format!("no secure connection: {error}"),
        // This one may quote a header.
        ureq::Error::Http(_) => "the request has letters in it that can't be sent".to_owned(),
        other => other.to_string(),
    })
}
