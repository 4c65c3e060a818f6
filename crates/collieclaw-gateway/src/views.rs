//! Read-only endpoints, and the emergency stop.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use collieclaw_agent::estop;
use collieclaw_agent::events::AgentEvent;
use collieclaw_agent::memory::ConversationMemory;
use collieclaw_agent::runtime::AgentRuntime;
use serde::Deserialize;
use serde_json::{Value, json};
use ward_diag::ErrorChain;

use super::blocking_io::run_blocking;
use super::response::{ErrorResponse, json_response, parse_query};
use super::state::GatewayState;
use super::{CHANNEL_NAME, OPENAPI};

fn static_file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

pub(super) async fn page() -> Response {
    static_file("text/html; charset=utf-8", include_str!("page/index.html"))
}

pub(super) async fn style() -> Response {
    static_file("text/css; charset=utf-8", include_str!("page/page.css"))
}

pub(super) async fn script() -> Response {
    static_file("text/javascript; charset=utf-8", include_str!("page/page.js"))
}

pub(super) async fn openapi() -> Response {
    static_file("application/json", OPENAPI)
}

pub(super) async fn health() -> Response {
    json_response(&json!({ "ok": true }))
}

pub(super) async fn status(State(gateway): State<Arc<GatewayState>>) -> Result<Response, ErrorResponse> {
    let looking = Arc::clone(&gateway);
    let looked = run_blocking(move || (estop::is_set(&looking.home), looking.current_config()));
    let (estop, state) = looked.await?;
    let config = &state.config;
    Ok(json_response(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "workspace": config.workspace_dir,
        "autonomy": config.security.autonomy,
        "provider": config.default_provider,
        "model": config.default_model,
        "receipts": config.receipts.enabled,
        "config_changed": state.changed,
        "config_fault": state.fault,
        "estop": estop,
        "turns": { "open": gateway.open_turn_count(), "older_rules": gateway.outdated_turn_count(&state),
            "most": config.channels.gateway.max_chats },
        "approvals": gateway.approvals.count(),
        "uptime_seconds": gateway.started.elapsed().as_secs(),
    })))
}

pub(super) async fn tools(State(gateway): State<Arc<GatewayState>>) -> Result<Response, ErrorResponse> {
    gateway.query_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let opening = Arc::clone(&gateway);
    let read = move || opening.open_runtime(&opening.current_config()).map(|runtime| tools_json(&runtime));
    let failed = |why| ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, "setup", why);
    gateway.read_pool.read(read).await?.map(|offered| json_response(&offered)).map_err(failed)
}

/// Lists every tool, and whether the model can call it through the gateway.
fn tools_json(runtime: &AgentRuntime) -> Value {
    let tool = |tool: &dyn collieclaw_agent::tools::Tool| {
        json!({ "name": tool.name(), "description": tool.description(), "offered": runtime.offered_tools.contains(tool.name()),
            "parameters": tool.parameters_schema() })
    };
    runtime.tool_gateway.rules.tools.iter().map(|one| tool(&**one)).collect()
}

#[derive(Deserialize)]
pub(super) struct MemorySearchQuery {
    q: String,
    #[serde(default = "default_hit_limit")]
    limit: usize,
}

fn default_hit_limit() -> usize {
    20
}

/// The maximum number of results on a page.
const MAX_PAGE_SIZE: usize = 200;

pub(super) async fn search(
    State(gateway): State<Arc<GatewayState>>,
    search: Result<Query<MemorySearchQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let search = parse_query(search, "`q` must be text, and `limit` a whole number")?;
    gateway.query_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let limit = search.limit.min(MAX_PAGE_SIZE);
    let reading = Arc::clone(&gateway);
    let found = gateway
        .read_pool
        .read(move || {
            let config = reading.current_config().config;
            ConversationMemory::open_scoped(&config.memory.path, config.memory_scope())?
                .search(&search.q, limit)
        })
        .await?;
    found.map(|found| json_response(&found)).map_err(|error| internal_error("memory", &error))
}

#[derive(Deserialize)]
pub(super) struct ReceiptPageQuery {
    before: Option<u64>,
    #[serde(default = "default_page_size")]
    limit: usize,
}

fn default_page_size() -> usize {
    50
}

pub(super) async fn receipts(
    State(gateway): State<Arc<GatewayState>>,
    page: Result<Query<ReceiptPageQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let page = parse_query(page, "`before` and `limit` must be whole numbers")?;
    gateway.query_limiter.take().map_err(ErrorResponse::rate_limited)?;
    let limit = page.limit.clamp(1, MAX_PAGE_SIZE);
    let reading = Arc::clone(&gateway);
    let found = gateway.read_pool.read(move || {
        reading
            .receipt_chain
            .read_page(page.before, limit)
            .map(|receipts| (reading.receipt_chain.status(), receipts))
    });
    let (chain, receipts) = found.await?.map_err(|error| internal_error("receipts", &error))?;
    let oldest = receipts.last().and_then(|receipt| receipt.record.get("sequence")).and_then(Value::as_u64);
    let next_before = oldest.filter(|oldest| *oldest > 1);
    Ok(json_response(&json!({ "chain": chain, "receipts": receipts, "next_before": next_before })))
}

pub(super) async fn set_estop(State(gateway): State<Arc<GatewayState>>) -> Result<Response, ErrorResponse> {
    let stopping = run_blocking(move || {
        let was_active = estop::is_set(&gateway.home);
        estop::set(&gateway.home)?;
        gateway.report_event(AgentEvent::EstopSet { channel: CHANNEL_NAME });
        Ok::<_, std::io::Error>(was_active)
    });
    let was_active = stopping.await?.map_err(|error| internal_error("estop", &error))?;
    Ok(json_response(&json!({ "active": true, "was_active": was_active })))
}

pub(super) async fn clear_estop(State(gateway): State<Arc<GatewayState>>) -> Result<Response, ErrorResponse> {
    let clearing = run_blocking(move || {
        let was_active = estop::clear(&gateway.home)?;
        if was_active {
            gateway.report_event(AgentEvent::EstopCleared { channel: CHANNEL_NAME });
        }
        Ok::<_, std::io::Error>(was_active)
    });
    let was_active = clearing.await?.map_err(|error| internal_error("estop", &error))?;
    Ok(json_response(&json!({ "active": false, "was_active": was_active })))
}

fn internal_error(code: &'static str, error: &dyn std::error::Error) -> ErrorResponse {
    ErrorResponse::new(StatusCode::INTERNAL_SERVER_ERROR, code, ErrorChain(error).to_string())
}
