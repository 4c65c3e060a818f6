//! The tool `time`, which returns the current time, locally, in UTC or in a named zone.

use collieclaw_gate::GateRequest;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeCall {
    /// A time zone such as `Europe/London`; the zone of the machine if absent.
    #[serde(default)]
    time_zone: Option<String>,
}

impl BuiltInTool for TimeCall {
    const NAME: &'static str = "time";
    const DESCRIPTION: &'static str =
        "Returns the current date and time, both in UTC and in the local or a given time zone.";
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
                        "unknown time zone `{name}`; use a name like Europe/London"
                    ));
                }
            },
        };
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default();
        let local = now.to_zoned(zone);
        let times = json!({
            "local": local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            "utc": now.to_string(),
            "time_zone": local.time_zone().iana_name().unwrap_or("unknown"),
            "weekday": local.strftime("%A").to_string(),
        });
        ToolResult::done(times.to_string())
    }
}
