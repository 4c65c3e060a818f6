//! One of several providers, chosen by what is asked and by whom (C4.4).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::estimate;
use super::reliable::ProviderTarget;
use super::{
    ChatRequest, ChatResponse, DraftEvent, Provider, ProviderCapabilities, ProviderCheck, ProviderError,
};
use crate::cancel::CancelFlag;

/// The key under which whoever asks leaves a hint.
const HINT: &str = "hint";

/// The metadata of a request, with a hint if there is one.
#[must_use]
pub fn hint_metadata(hint: Option<&str>) -> Map<String, Value> {
    hint.map(|hint| (HINT.to_owned(), Value::from(hint))).into_iter().collect()
}

/// What a request must be like. All of it must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RouteCondition {
    /// Its hint is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hint: Vec<String>,
    /// It offers tools, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// It has more tokens than this, by estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer_than: Option<u64>,
    /// Its metadata has these.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl RouteCondition {
    /// Whether a request is so.
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

/// Is told who was chosen, and by which rule, counted from one; by none, if it is the default.
pub type RouteObserver = Box<dyn Fn(&str, Option<usize>)>;

/// Chooses by the first rule that holds.
pub struct RouterProvider {
    name: String,
    rules: Vec<(RouteCondition, ProviderTarget)>,
    default: ProviderTarget,
    observer: RouteObserver,
}

impl RouterProvider {
    /// By these rules, and by none of them the default.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        rules: Vec<(RouteCondition, ProviderTarget)>,
        default: ProviderTarget,
        chose: RouteObserver,
    ) -> Self {
        Self { name: name.into(), rules, default, observer: chose }
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
        let found = self.rules.iter().enumerate().find(|(_, (when, _))| when.matches(request));
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
