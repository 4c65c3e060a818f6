//! Audit events as records of the ledger, and back.

use serde_json::{Map, Value};
use shepherd_api::AuditEvent;

use crate::error::AuditEventError;

/// The record of an event, without what the ledger adds to it.
///
/// # Errors
/// When the event can't be written as a JSON object.
pub fn event_to_record(event: &AuditEvent) -> Result<Map<String, Value>, AuditEventError> {
    match serde_json::to_value(event) {
        Ok(Value::Object(record)) => Ok(record),
        Ok(_) => Err(AuditEventError::NotAnObject),
        Err(error) => Err(AuditEventError::Json(error.to_string())),
    }
}

/// The event of a record; what the ledger added to it is left out.
///
/// # Errors
/// When the record is not of an event that this version knows.
pub fn record_to_event(record: Map<String, Value>) -> Result<AuditEvent, AuditEventError> {
    serde_json::from_value(Value::Object(record)).map_err(|error| AuditEventError::Json(error.to_string()))
}
