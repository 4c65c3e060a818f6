//! Audit events as records of the ledger, and back.

use serde_json::{Map, Value};
use shepherd_api::AuditEvent;

use crate::error::EventError;

/// The record of an event, without what the ledger adds to it.
///
/// # Errors
/// When the event can't be written as a JSON object.
pub fn record_of(event: &AuditEvent) -> Result<Map<String, Value>, EventError> {
    match serde_json::to_value(event) {
        Ok(Value::Object(record)) => Ok(record),
        Ok(_) => Err(EventError::NotAnObject),
        Err(error) => Err(EventError::Json(error.to_string())),
    }
}

/// The event of a record; what the ledger added to it is left out.
///
/// # Errors
/// When the record is not of an event that this version knows.
pub fn event_of(record: Map<String, Value>) -> Result<AuditEvent, EventError> {
    serde_json::from_value(Value::Object(record)).map_err(|error| EventError::Json(error.to_string()))
}
