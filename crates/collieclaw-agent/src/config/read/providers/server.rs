//! Reads providers with `kind = "openai-compatible"`.

use collieclaw_providers::net::RequestUrl;
use ward_diag::{InvalidValue, TomlTable, TomlValue, ValueKind};

use super::{ConfigReader, read_price};
use crate::config::expand::parse_duration;
use crate::config::read::values::{nonempty_text, text_or};
use crate::config::{ModelServerSettings, ModelTemperature, ProviderSettings};
use crate::usage::TokenPrice;

pub(in crate::config) const DEFAULT_SERVER: &str = "http://localhost:1234/v1";
pub(in crate::config) const DEFAULT_SERVER_MODEL: &str = "local-model";
pub(in crate::config) const DEFAULT_KEY_VARIABLE: &str = "OPENAI_API_KEY";

pub(super) fn default_server() -> ProviderSettings {
    ProviderSettings::OpenAiCompatible(ModelServerSettings {
        base_url: DEFAULT_SERVER.to_owned(),
        model: DEFAULT_SERVER_MODEL.to_owned(),
        api_key_env: DEFAULT_KEY_VARIABLE.to_owned(),
        stream: true,
        temperature: None,
        timeout: None,
        stall_timeout: None,
        price: TokenPrice::default(),
    })
}

impl ConfigReader<'_> {
    pub(super) fn server(&self, table: &mut TomlTable<'_>, name: &str) -> Option<ModelServerSettings> {
        let faults = table.faults();
        let base_url = |value: TomlValue<'_>| {
            // The URL may contain a password before the host.
            if matches!(value.kind(), ValueKind::Text(text) if text.contains('@')) {
                faults.hide(value.span());
            }
            value.parse(|text| self.context.expand(text).and_then(|url| parse_server_url(&url)))
        };
        let (base_url, model) = if name == "openai_compatible" {
            let base_url =
                table.optional_with("base_url", base_url).unwrap_or_else(|| DEFAULT_SERVER.to_owned());
            (Some(base_url), Some(text_or(table, "model", DEFAULT_SERVER_MODEL)))
        } else {
            let model = table.required_with("model", nonempty_text).map(|model| model.value);
            (table.required_with("base_url", base_url), model)
        };
        let variable = |value: TomlValue<'_>| value.parse(parse_variable_name);
        let default = if name == "openai_compatible" { DEFAULT_KEY_VARIABLE } else { "" };
        let api_key_env = table.optional_with("api_key_env", variable).unwrap_or_else(|| default.to_owned());
        let stream = table.optional("stream").unwrap_or(true);
        let temperature =
            |value: TomlValue<'_>| value.number_in(0.0..=ModelTemperature::MAX).map(ModelTemperature::new);
        let temperature = table.optional_with("temperature", temperature);
        let timeout = table.optional_parsed("timeout", parse_duration);
        let stall_timeout = table.optional_parsed("stall_timeout", parse_duration);
        let price = read_price(table);
        Some(ModelServerSettings {
            base_url: base_url?,
            model: model?,
            api_key_env,
            stream,
            temperature,
            timeout,
            stall_timeout,
            price,
        })
    }
}

fn parse_server_url(url: &str) -> Result<String, InvalidValue> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if host.contains('@') {
        return Err(InvalidValue::new("a URL must not contain a user name or password")
            .help("put the key into an environment variable and name the variable in `api_key_env`"));
    }
    if host.is_empty() || url.contains(['?', '#']) || RequestUrl::parse(url).is_err() {
        return Err(InvalidValue::new("this is not the URL of a server")
            .help("write it like `http://localhost:1234/v1`"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// Parses the name of an environment variable. The fault doesn't quote the value, which may be the key
/// itself.
pub(in crate::config::read) fn parse_variable_name(text: &str) -> Result<String, InvalidValue> {
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_name || text.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(InvalidValue::new("this is not the name of a variable")
            .help("name the variable that holds the key, like `OPENAI_API_KEY`"))
    }
}
