//! HTTP requests that end when they are cancelled or their deadline passes.
//!
//! Host names are resolved once, the addresses are checked, and the connection goes to a checked address, so
//! a second DNS answer can't redirect it. The requests of tools use no proxies, cookies, connection pools or
//! stored credentials, and a redirect is followed only if the gate allows it.

mod deadline;
mod resolver;
mod url;

mod event_stream;
mod exchange;
mod transport;

mod fetch;
mod proxy;
mod search;
mod text_body;

pub use deadline::{CancellableDeadline, WaitError};
pub use event_stream::{EventReader, EventTooLong, StreamEvent};
pub use fetch::{FetchContext, FetchError, FetchRequest, FetchResponse, FetchedBody};
pub use proxy::{CommandProxy, ProxyRecord, ProxyReport, ProxySettings};
pub use resolver::{NameResolver, ResolveError, SystemResolver};
pub use search::{QUERY_PLACEHOLDER, SearchError, SearchResult, SearchService, WebSearchSettings};

pub(crate) use exchange::{BodyStream, ExchangeError, HttpRequest, HttpResponse, send_request};
pub use url::RequestUrl;
