//! One request, one reply.

#[cfg(test)]
mod encrypted;

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use collieclaw_gate::{Host, Method};
use ureq::config::{AutoHeaderValue, Config};
use ureq::http::{HeaderMap, Request, Response, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::{Connector, RustlsConnector};

use super::link::Link;
use super::lookup::{Lookup, LookupError};
use super::patience::{Patience, Stopped};
use super::wire::{Chosen, Dial, Silent};

/// Headers are for programs; more than this is an attack on memory.
const LONGEST_HEADERS: usize = 64 * 1024;

/// No type has a longer name; what has is nothing that a model should read (RFC 6838, 4.2).
const LONGEST_TYPE: usize = 255;

/// What is asked for.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) link: &'a Link,
    /// The numbers that the host stands for, already looked at.
    pub(crate) numbers: &'a [IpAddr],
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

/// What came back, its body still to be read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: HeaderMap,
    body: ureq::Body,
    patience: Patience,
}

/// Why there is no answer. Never holds what was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The waiting is over.
    Stopped(Stopped),
    /// Nobody listens there.
    NobodyListens,
    /// The reply has begun, and nothing more came for too long.
    Silent,
    /// Anything else, as a sentence without a full stop.
    Failed(String),
}

impl Link {
    /// The numbers that the host stands for.
    pub(crate) fn numbers(
        &self,
        lookup: &dyn Lookup,
        patience: &Patience,
    ) -> Result<Vec<IpAddr>, LookupError> {
        match &self.address.host {
            Host::Number(number) => Ok(vec![*number]),
            Host::Name(name) => {
                let numbers = lookup.numbers(name, patience)?;
                if numbers.is_empty() {
                    let detail = "it has no number".to_owned();
                    return Err(LookupError::NotFound { name: name.clone(), detail });
                }
                Ok(numbers)
            }
        }
    }
}

/// Sends a request and waits for the beginning of the reply.
pub(crate) fn ask(ask: &Ask<'_>, patience: &Patience) -> Result<Answer, Broken> {
    ask_trusting(ask, patience, RootCerts::WebPki)
}

fn ask_trusting(ask: &Ask<'_>, patience: &Patience, trusted: RootCerts) -> Result<Answer, Broken> {
    let port = ask.link.address.port;
    let addresses = ask.numbers.iter().map(|number| SocketAddr::new(*number, port)).collect();
    let connector = Dial(patience.clone()).chain(RustlsConnector::default());
    let agent = ureq::Agent::with_parts(config(trusted), connector, Chosen(addresses));
    let mut request = Request::builder().uri(ask.link.to_string());
    for (name, value) in ask.headers {
        request = request.header(*name, *value);
    }
    let sent = match ask.method {
        Method::Get => request.method("GET").body(()).map_err(ureq::Error::from).and_then(|it| agent.run(it)),
        Method::Post => {
            request.method("POST").body(ask.body).map_err(ureq::Error::from).and_then(|it| agent.run(it))
        }
    };
    let response: Response<ureq::Body> = sent.map_err(|error| broken(error, patience))?;
    let (parts, body) = response.into_parts();
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body, patience: patience.clone() })
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

impl Answer {
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
    pub(crate) fn read(self, most: usize) -> Result<Vec<u8>, Broken> {
        self.incoming().rest(most)
    }

    /// The body as it comes.
    pub(crate) fn incoming(self) -> Incoming {
        Incoming { reader: self.body.into_reader(), patience: self.patience }
    }
}

/// A body that is read as it comes.
pub(crate) struct Incoming {
    reader: ureq::BodyReader<'static>,
    patience: Patience,
}

impl Incoming {
    /// Waits for more and puts it into `buffer`; none is the end.
    pub(crate) fn some(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => return read.map_err(|error| broken(ureq::Error::from(error), &self.patience)),
            }
        }
    }

    /// All that is left, but at most so many bytes and one, which tells that there is more.
    pub(crate) fn rest(self, most: usize) -> Result<Vec<u8>, Broken> {
        let most = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let mut bytes = Vec::new();
        let read = self.reader.take(most).read_to_end(&mut bytes);
        read.map_err(|error| broken(ureq::Error::from(error), &self.patience))?;
        Ok(bytes)
    }

    /// From now on a silence that is longer is an error.
    pub(crate) fn end_silence_after(&self, silence: Duration) {
        self.patience.end_silence_after(silence);
    }
}

/// What an error means to people. Errors of the library never hold headers or bodies.
fn broken(error: ureq::Error, patience: &Patience) -> Broken {
    if let Err(stopped) = patience.left() {
        return Broken::Stopped(stopped);
    }
    Broken::Failed(match error {
        ureq::Error::Io(error) => match error.kind() {
            _ if error.get_ref().and_then(|inner| inner.downcast_ref::<Silent>()).is_some() => {
                return Broken::Silent;
            }
            std::io::ErrorKind::ConnectionRefused => return Broken::NobodyListens,
            std::io::ErrorKind::TimedOut => return Broken::Stopped(Stopped::TimedOut),
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
