//! A provider that chooses another provider by rules about the request (C4.4).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::estimate;
use super::reliable::ProviderTarget;
use super::{
    ChatRequest, ChatResponse, DraftEvent, Provider, ProviderCapabilities, ProviderCheck, ProviderError,
};
use crate::cancel::CancelFlag;

/// The metadata key that carries a hint.
const HINT: &str = "hint";

/// Returns request metadata with the hint, if there is one.
#[must_use]
pub fn hint_metadata(hint: Option<&str>) -> Map<String, Value> {
    hint.map(|hint| (HINT.to_owned(), Value::from(hint))).into_iter().collect()
}

/// The conditions of a routing rule. All of them must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RouteCondition {
    /// The request's hint is in this list. An empty list accepts every request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hint: Vec<String>,
    /// The request offers tools (`true`) or none (`false`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// The estimated number of tokens exceeds this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer_than: Option<u64>,
    /// The request's metadata has these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl RouteCondition {
    /// Returns true if a request meets all conditions.
    #[must_use]
    pub fn matches(&self, request: &ChatRequest) -> bool {
        let has = |name: &str, wanted: &str| match request.metadata.get(name) {
            Some(Value::String(text)) => text == wanted,
            Some(other) => *wanted == *other.to_string(),
            None => false,
        };
        (self.hint.is_empty() || self.hint.iter().any(|hint| has(HINT, hint)))
            && self.tools.is_none_or(|tools| tools != request.tools.is_empty())
            && self.longer_than.is_none_or(|most| estimate::request(request) > most)
            && self.metadata.iter().all(|(name, wanted)| has(name, wanted))
    }
}

/// A callback that gets the chosen provider and the number of the rule, counted from one, or `None` for the
/// default.
pub type RouteObserver = Box<dyn Fn(&str, Option<usize>)>;

/// A provider that forwards each request to the target of the first matching rule.
pub struct RouterProvider {
    name: String,
    rules: Vec<(RouteCondition, ProviderTarget)>,
    default: ProviderTarget,
    observer: RouteObserver,
}

impl RouterProvider {
    /// Creates a router. Requests that match no rule go to `default`.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        rules: Vec<(RouteCondition, ProviderTarget)>,
        default: ProviderTarget,
        observer: RouteObserver,
    ) -> Self {
        Self { name: name.into(), rules, default, observer }
    }
}

impl Provider for RouterProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> ProviderCapabilities {
        let members = self.rules.iter().map(|(_, member)| member).chain([&self.default]);
        ProviderCapabilities::common_to(members.map(|member| member.provider.capabilities()))
    }

    fn chat(
        &self,
        request: &ChatRequest,
        listener: &mut dyn FnMut(DraftEvent<'_>),
        cancel: &CancelFlag,
    ) -> Result<ChatResponse, ProviderError> {
        let found = self.rules.iter().enumerate().find(|(_, (condition, _))| condition.matches(request));
        let (member, rule) = match found {
            Some((index, (_, member))) => (member, Some(index + 1)),
            None => (&self.default, None),
        };
        (self.observer)(member.provider.name(), rule);
        member.chat(request, listener, cancel)
    }

    fn check(&self, _: &str, cancel: &CancelFlag) -> Result<ProviderCheck, ProviderError> {
        self.default.provider.check(&self.default.model, cancel)
    }
}
