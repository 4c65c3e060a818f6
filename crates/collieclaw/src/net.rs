//! The network: one exchange at a time, that ends when somebody says stop or when its time is over.
//!
//! Names are looked up here, the numbers are looked at, and the connection goes to one of exactly these: nothing asks a
//! second time. There are no proxies, no cookies, no pools and no credentials of anyone; no redirect is followed unless
//! the gate agrees.

mod link;
mod lookup;
mod patience;

mod event_stream;
mod exchange;
mod wire;

mod fetch;
mod search;
mod text;

pub use event_stream::{EventReader, EventTooLong, StreamEvent};
pub use fetch::{Body, Fetch, FetchError, Fetched, Order};
pub use lookup::{Lookup, LookupError, SystemLookup};
pub use patience::{Patience, Stopped};
pub use search::{Found, SearchError, SearchService};

pub(crate) use exchange::{Answer, Ask, Broken, Incoming, ask};
pub(crate) use link::Link;
pub(crate) use search::QUERY;
