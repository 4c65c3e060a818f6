//! Metrics in the Prometheus text format (C5.3), counted since the start of this gateway.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use collieclaw_agent::estop;

use super::response::ErrorResponse;
use super::state::GatewayState;

#[derive(Default)]
pub(super) struct GatewayMetrics {
    pub(super) conversations: MetricCounter,
    pub(super) tool_calls: MetricCounter,
    pub(super) tool_denials: MetricCounter,
    pub(super) provider_errors: MetricCounter,
}

/// A counter that only grows.
#[derive(Default)]
pub(super) struct MetricCounter(AtomicU64);

impl MetricCounter {
    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The metric types of the format.
const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

pub(super) async fn show(State(gateway): State<Arc<GatewayState>>) -> Result<Response, ErrorResponse> {
    gateway.query_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let looking = Arc::clone(&gateway);
    let text = gateway.read_pool.read(move || render_metrics(&looking)).await?;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

fn render_metrics(gateway: &GatewayState) -> String {
    let metrics = &gateway.metrics;
    let count = |count: &MetricCounter| count.0.load(Ordering::Relaxed);
    let figures = [
        ("conversations_total", COUNTER, "Conversations started.", count(&metrics.conversations)),
        ("tool_calls_total", COUNTER, "Tool calls requested by models.", count(&metrics.tool_calls)),
        (
            "tool_denials_total",
            COUNTER,
            "Tool calls denied by a rule, an operator, a timeout or the emergency stop.",
            count(&metrics.tool_denials),
        ),
        (
            "provider_errors_total",
            COUNTER,
            "Turns that failed because of the provider.",
            count(&metrics.provider_errors),
        ),
        (
            "receipt_chain_valid",
            GAUGE,
            "Whether the receipt chain is valid.",
            u64::from(gateway.receipt_chain.status().valid),
        ),
        (
            "estop_active",
            GAUGE,
            "Whether the emergency stop is active.",
            u64::from(estop::is_set(&gateway.home)),
        ),
        ("turns_open", GAUGE, "Running turns.", gateway.open_turn_count() as u64),
        ("approvals_open", GAUGE, "Open approvals and questions.", gateway.approvals.count() as u64),
    ];
    figures.iter().fold(String::new(), |mut text, (name, kind, help, value)| {
        let _ = writeln!(
            text,
            "# HELP collieclaw_{name} {help}\n# TYPE collieclaw_{name} {kind}\ncollieclaw_{name} {value}"
        );
        text
    })
}
