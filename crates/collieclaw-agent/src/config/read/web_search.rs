//! Reads the section `[web_search]`.

use collieclaw_providers::net::{QUERY_PLACEHOLDER, RequestUrl};
use ward_diag::{InvalidValue, TomlTable, TomlValue, ValueKind};

use super::ConfigReader;
use super::providers::{parse_variable_name, reject_inline_key};
use super::values::text_or;
use crate::config::WebSearchSettings;

impl ConfigReader<'_> {
    pub(super) fn web_search(&self, table: Option<TomlTable<'_>>) -> Option<WebSearchSettings> {
        let mut table = table?;
        let faults = table.faults();
        let url = |value: TomlValue<'_>| {
            // The URL may contain a key.
            if matches!(value.kind(), ValueKind::Text(text) if text.contains(['@', '?'])) {
                faults.hide(value.span());
            }
            value.parse(|text| self.context.expand(text).and_then(|url| parse_search_url(&url)))
        };
        let url = table.required_with("url", url);
        let results = table.optional_with("results", |value| value.parse(parse_json_pointer));
        let read = WebSearchSettings {
            results: results.unwrap_or_else(|| "/results".to_owned()),
            title: text_or(&mut table, "title", "title"),
            link: text_or(&mut table, "link", "url"),
            text: text_or(&mut table, "text", "content"),
            api_key_env: table
                .optional_with("api_key_env", |value| value.parse(parse_variable_name))
                .unwrap_or_default(),
            api_key_header: table
                .optional_with("api_key_header", |value| value.parse(parse_header_name))
                .unwrap_or_default(),
            url: String::new(),
        };
        reject_inline_key(&mut table);
        table.finish();
        Some(WebSearchSettings { url: url?, ..read })
    }
}

fn parse_search_url(url: &str) -> Result<String, InvalidValue> {
    let refused = |what: &str| {
        Err(InvalidValue::new(what)
            .help("write it like `http://localhost:8888/search?q={query}&format=json`"))
    };
    let (before, _) = url.split_once(QUERY_PLACEHOLDER).unwrap_or((url, ""));
    if url.matches(QUERY_PLACEHOLDER).count() != 1 {
        return refused("the URL must contain `{query}` once, in place of the search words");
    }
    // A placeholder in the host would let the model choose the server.
    if before.splitn(4, '/').count() < 4 {
        return refused("`{query}` must come after the host");
    }
    if before.contains(['@', '#']) || RequestUrl::parse(&url.replace(QUERY_PLACEHOLDER, "x")).is_err() {
        return refused("this is not the URL of a search service");
    }
    Ok(url.to_owned())
}

fn parse_json_pointer(text: &str) -> Result<String, InvalidValue> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err(InvalidValue::new("this is not a JSON Pointer").help(format!("write `/{text}`")))
    }
}

fn parse_header_name(text: &str) -> Result<String, InvalidValue> {
    let is_valid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_valid {
        Ok(text.to_owned())
    } else {
        Err(InvalidValue::new("this is not the name of a header")
            .help("write it like `X-Subscription-Token`"))
    }
}
