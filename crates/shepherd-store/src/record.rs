//! Converts audit events to ledger records and back.

use serde_json::{Map, Value};
use shepherd_api::AuditEvent;

use crate::error::AuditEventError;

/// Returns the record of an event, without the members that the ledger adds.
///
/// # Errors
/// The event can't be written as a JSON object.
pub fn event_to_record(event: &AuditEvent) -> Result<Map<String, Value>, AuditEventError> {
    match serde_json::to_value(event) {
        Ok(Value::Object(record)) => Ok(record),
        Ok(_) => Err(AuditEventError::NotAnObject),
        Err(error) => Err(AuditEventError::Json(error.to_string())),
    }
}

/// Returns the event of a record, without the members that the ledger added.
///
/// # Errors
/// The record isn't an event that this version knows.
pub fn record_to_event(record: Map<String, Value>) -> Result<AuditEvent, AuditEventError> {
    serde_json::from_value(Value::Object(record)).map_err(|error| AuditEventError::Json(error.to_string()))
}
