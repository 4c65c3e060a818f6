//! The network: one exchange at a time, that ends when somebody says stop or when its time is over.
//!
//! Names are looked up here, the numbers are looked at, and the connection goes to one of exactly these: nothing asks a
//! second time. There are no proxies, no cookies, no pools and no credentials of anyone; no redirect is followed unless
//! the gate agrees.

mod deadline;
mod resolver;
mod url;

mod event_stream;
mod exchange;
mod transport;

mod fetch;
mod search;
mod text_body;

pub use deadline::{CancellableDeadline, WaitError};
pub use event_stream::{EventReader, EventTooLong, StreamEvent};
pub use fetch::{FetchContext, FetchError, FetchRequest, FetchResponse, FetchedBody};
pub use resolver::{NameResolver, ResolveError, SystemResolver};
pub use search::{QUERY_PLACEHOLDER, SearchError, SearchResult, SearchService, WebSearchSettings};

pub(crate) use exchange::{BodyStream, ExchangeError, HttpRequest, HttpResponse, send_request};
pub use url::RequestUrl;
