//! `[web_search]`.

use ward_diag::{Invalid, Shape, Table, Value};

use super::Reader;
use super::providers::{key_does_not_belong_here, variable_name};
use super::words::text_or;
use crate::config::WebSearch;
use crate::net::{Link, QUERY};

impl Reader<'_> {
    pub(super) fn web_search(&self, table: Option<Table<'_>>) -> Option<WebSearch> {
        let mut table = table?;
        let faults = table.faults();
        let url = |value: Value<'_>| {
            // Somebody may have put a key into the address.
            if matches!(value.shape(), Shape::Text(text) if text.contains(['@', '?'])) {
                faults.hide(value.span());
            }
            value.parse(|text| self.surroundings.expand(text).and_then(|url| search_url(&url)))
        };
        let url = table.required_with("url", url);
        let results = table.optional_with("results", |value| value.parse(pointer));
        let read = WebSearch {
            results: results.unwrap_or_else(|| "/results".to_owned()),
            title: text_or(&mut table, "title", "title"),
            link: text_or(&mut table, "link", "url"),
            text: text_or(&mut table, "text", "content"),
            api_key_env: table
                .optional_with("api_key_env", |value| value.parse(variable_name))
                .unwrap_or_default(),
            api_key_header: table
                .optional_with("api_key_header", |value| value.parse(header))
                .unwrap_or_default(),
            url: String::new(),
        };
        key_does_not_belong_here(&mut table);
        table.finish();
        Some(WebSearch { url: url?, ..read })
    }
}

fn search_url(url: &str) -> Result<String, Invalid> {
    let refused = |what: &str| {
        Err(Invalid::new(what).help("write it like `http://localhost:8888/search?q={query}&format=json`"))
    };
    let (before, _) = url.split_once(QUERY).unwrap_or((url, ""));
    if url.matches(QUERY).count() != 1 {
        return refused("the address must have `{query}` in it, once: the words go there");
    }
    // In the host it would let the model choose who is asked.
    if before.splitn(4, '/').count() < 4 {
        return refused("`{query}` must come after the host");
    }
    if before.contains(['@', '#']) || Link::read(&url.replace(QUERY, "x")).is_err() {
        return refused("this is no address of a search service");
    }
    Ok(url.to_owned())
}

fn pointer(text: &str) -> Result<String, Invalid> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err(Invalid::new("this is no JSON Pointer").help(format!("write `/{text}`")))
    }
}

fn header(text: &str) -> Result<String, Invalid> {
    let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_one {
        Ok(text.to_owned())
    } else {
        Err(Invalid::new("this is no name of a header").help("write it like `X-Subscription-Token`"))
    }
}
