//! A single HTTP request and its response.

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

/// The maximum size of all headers. Larger headers are an attack on memory.
const LONGEST_HEADERS: usize = 64 * 1024;

/// The longest media type (RFC 6838, 4.2). Longer types are dropped, because the model reads them.
const LONGEST_TYPE: usize = 255;

pub(crate) struct HttpRequest<'a> {
    pub(crate) method: HttpMethod,
    pub(crate) url: &'a RequestUrl,
    /// The host's addresses, already checked.
    pub(crate) addresses: &'a [IpAddr],
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

/// A response with an unread body.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    headers: HeaderMap,
    body: ureq::Body,
    deadline: CancellableDeadline,
}

/// The reason why there is no response. The texts never contain the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExchangeError {
    Stopped(WaitError),
    ConnectionRefused,
    /// The server started its reply and then sent nothing for too long.
    Stalled,
    /// Any other failure, as a sentence without a full stop.
    Failed(String),
}

impl RequestUrl {
    /// Returns the IP addresses of the host.
    pub(crate) fn resolve_addresses(
        &self,
        resolver: &dyn NameResolver,
        deadline: &CancellableDeadline,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        match &self.address.host {
            UrlHost::Ip(ip) => Ok(vec![*ip]),
            UrlHost::Name(name) => {
                let addresses = resolver.resolve(name, deadline)?;
                if addresses.is_empty() {
                    let detail = "it has no IP address".to_owned();
                    return Err(ResolveError::NotFound { name: name.clone(), detail });
                }
                Ok(addresses)
            }
        }
    }
}

/// Sends a request and waits for the response headers.
pub(crate) fn send_request(
    request: &HttpRequest<'_>,
    deadline: &CancellableDeadline,
) -> Result<HttpResponse, ExchangeError> {
    send_with_roots(request, deadline, RootCerts::WebPki)
}

fn send_with_roots(
    request: &HttpRequest<'_>,
    deadline: &CancellableDeadline,
    roots: RootCerts,
) -> Result<HttpResponse, ExchangeError> {
    let port = request.url.address.port;
    let addresses = request.addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
    let connector = DeadlineConnector(deadline.clone()).chain(RustlsConnector::default());
    let agent = ureq::Agent::with_parts(config(roots), connector, ResolvedAddresses(addresses));
    let mut builder = Request::builder().uri(request.url.to_string());
    for (name, value) in request.headers {
        builder = builder.header(*name, *value);
    }
    let sent = match request.method {
        HttpMethod::Get => {
            builder.method("GET").body(()).map_err(ureq::Error::from).and_then(|request| agent.run(request))
        }
        HttpMethod::Post => builder
            .method("POST")
            .body(request.body)
            .map_err(ureq::Error::from)
            .and_then(|request| agent.run(request)),
    };
    let response: Response<ureq::Body> = sent.map_err(|error| exchange_error(error, deadline))?;
    let (parts, body) = response.into_parts();
    Ok(HttpResponse {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
        deadline: deadline.clone(),
    })
}

fn config(roots: RootCerts) -> Config {
    let tls = TlsConfig::builder()
        .root_certs(roots)
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
    /// Returns a header, if it is present and readable.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the media type in lower case, without parameters.
    pub(crate) fn content_type(&self) -> Option<String> {
        let value = self.header(header::CONTENT_TYPE.as_str())?;
        let kind = value.split(';').next().unwrap_or_default().trim();
        let is_valid = !kind.is_empty() && kind.len() <= LONGEST_TYPE;
        is_valid.then(|| kind.to_ascii_lowercase())
    }

    /// Returns the body length that the server announced.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.body.content_length()
    }

    /// Reads the body up to `most` bytes, plus one byte that reveals a longer body.
    pub(crate) fn read(self, most: usize) -> Result<Vec<u8>, ExchangeError> {
        self.into_body_stream().read_rest(most)
    }

    pub(crate) fn into_body_stream(self) -> BodyStream {
        BodyStream { reader: self.body.into_reader(), deadline: self.deadline }
    }
}

/// A body that is read while it arrives.
pub(crate) struct BodyStream {
    reader: ureq::BodyReader<'static>,
    deadline: CancellableDeadline,
}

impl BodyStream {
    /// Waits for input and reads it into `buffer`. Returns 0 at the end of the body.
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

    /// Reads the remaining body up to `most` bytes, plus one byte that reveals a longer body.
    pub(crate) fn read_rest(self, most: usize) -> Result<Vec<u8>, ExchangeError> {
        let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        let read = self.reader.take(most).read_to_end(&mut bytes);
        read.map_err(|error| exchange_error(ureq::Error::from(error), &self.deadline))?;
        Ok(bytes)
    }

    /// Sets the longest time for which the server may send nothing, from now on.
    pub(crate) fn set_stall_timeout(&self, silence: Duration) {
        self.deadline.set_stall_timeout(silence);
    }
}

/// Translates an error for the operator. The library's errors never contain headers or bodies.
fn exchange_error(error: ureq::Error, deadline: &CancellableDeadline) -> ExchangeError {
    if let Err(stopped) = deadline.remaining() {
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
        ureq::Error::Protocol(error) => format!("the reply is not valid HTTP: {error}"),
        ureq::Error::LargeResponseHeader(..) => {
            format!("the reply has more than {LONGEST_HEADERS} bytes of headers")
        }
        ureq::Error::Rustls(error) => format!("could not establish a secure connection: {error}"),
        // This error may quote a header, so its text is not shown.
        ureq::Error::Http(_) => "the request contains characters that can't be sent".to_owned(),
        other => other.to_string(),
    })
}
