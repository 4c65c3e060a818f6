//! `time`: what time it is, here, in UTC or in a named zone.

use collieclaw_gate::GateRequest;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeCall {
    /// A time zone such as `Europe/London`; the machine's own if absent.
    #[serde(default)]
    time_zone: Option<String>,
}

impl BuiltInTool for TimeCall {
    const NAME: &'static str = "time";
    const DESCRIPTION: &'static str = "Tells the date and time: local or in a time zone, and in UTC.";
}

impl PreparedCall for TimeCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::ReadOnly
    }

    fn invoke(self: Box<Self>, _: CallGrant, _: &ToolContext<'_>) -> ToolResult {
        let zone = match &self.time_zone {
            None => TimeZone::system(),
            Some(name) => match TimeZone::get(name) {
                Ok(zone) => zone,
                Err(_) => {
                    return ToolResult::failed(format!(
                        "`{name}` is no time zone; write it like Europe/London"
                    ));
                }
            },
        };
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default();
        let local = now.to_zoned(zone);
        let told = json!({
            "local": local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            "utc": now.to_string(),
            "time_zone": local.time_zone().iana_name().unwrap_or("unknown"),
            "weekday": local.strftime("%A").to_string(),
        });
        ToolResult::done(told.to_string())
    }
}
