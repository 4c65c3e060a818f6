//! What is only looked at, and the emergency stop.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use ward_diag::Chain;

use super::answer::{Refusal, json_answer, queried};
use super::desk::Desk;
use super::readers::at_once;
use super::{CHANNEL, OPENAPI};
use crate::estop;
use crate::events::Event;
use crate::memory::Memory;
use crate::runtime::Runtime;

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

pub(super) async fn page() -> Response {
    file("text/html; charset=utf-8", include_str!("page/index.html"))
}

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("page/page.css"))
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("page/page.js"))
}

pub(super) async fn openapi() -> Response {
    file("application/json", OPENAPI)
}

pub(super) async fn health() -> Response {
    json_answer(&json!({ "ok": true }))
}

pub(super) async fn status(State(desk): State<Arc<Desk>>) -> Result<Response, Refusal> {
    let looking = Arc::clone(&desk);
    let looked = at_once(move || (estop::is_set(&looking.home), looking.in_force()));
    let (estop, state) = looked.await?;
    let config = &state.config;
    Ok(json_answer(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "workspace": config.workspace_dir,
        "autonomy": config.security.autonomy,
        "provider": config.default_provider,
        "model": config.default_model,
        "receipts": config.receipts.enabled,
        "config_changed": state.changed,
        "config_fault": state.fault,
        "estop": estop,
        "turns": { "open": desk.turns_open(), "older_rules": desk.turns_of_before(&state),
            "most": config.channels.gateway.max_chats },
        "approvals": desk.approvals.count(),
        "uptime_seconds": desk.started.elapsed().as_secs(),
    })))
}

pub(super) async fn tools(State(desk): State<Arc<Desk>>) -> Result<Response, Refusal> {
    desk.searches.take().map_err(Refusal::too_often)?;
    let opening = Arc::clone(&desk);
    let read = move || opening.open(&opening.in_force()).map(|runtime| offered(&runtime));
    let failed = |why| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "setup", why);
    desk.readers.read(read).await?.map(|offered| json_answer(&offered)).map_err(failed)
}

/// Every tool there is, and whether the model is told of it here.
fn offered(runtime: &Runtime) -> Value {
    let tool = |tool: &dyn crate::tools::Tool| {
        json!({ "name": tool.name(), "description": tool.description(), "offered": runtime.offered.contains(tool.name()),
            "parameters": tool.parameters_schema() })
    };
    runtime.door.rules.tools.iter().map(|one| tool(&**one)).collect()
}

#[derive(Deserialize)]
pub(super) struct Search {
    q: String,
    #[serde(default = "usual_hits")]
    limit: usize,
}

fn usual_hits() -> usize {
    20
}

/// More on one page help nobody.
const MOST_ON_A_PAGE: usize = 200;

pub(super) async fn search(
    State(desk): State<Arc<Desk>>,
    search: Result<Query<Search>, QueryRejection>,
) -> Result<Response, Refusal> {
    let search = queried(search, "`q` is what is looked for, and `limit` a whole number")?;
    desk.searches.take().map_err(Refusal::too_often)?;
    let limit = search.limit.min(MOST_ON_A_PAGE);
    let reading = Arc::clone(&desk);
    let found = desk
        .readers
        .read(move || Memory::open(&reading.in_force().config.memory.path)?.search(&search.q, limit))
        .await?;
    found.map(|found| json_answer(&found)).map_err(|error| failed("memory", &error))
}

#[derive(Deserialize)]
pub(super) struct Page {
    before: Option<u64>,
    #[serde(default = "usual_page")]
    limit: usize,
}

fn usual_page() -> usize {
    50
}

pub(super) async fn receipts(
    State(desk): State<Arc<Desk>>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Response, Refusal> {
    let page = queried(page, "`before` and `limit` are whole numbers")?;
    desk.searches.take().map_err(Refusal::too_often)?;
    let limit = page.limit.clamp(1, MOST_ON_A_PAGE);
    let reading = Arc::clone(&desk);
    let found = desk.readers.read(move || {
        reading.chain.page(page.before, limit).map(|receipts| (reading.chain.state(), receipts))
    });
    let (chain, receipts) = found.await?.map_err(|error| failed("receipts", &error))?;
    let oldest = receipts.last().and_then(|receipt| receipt.record.get("sequence")).and_then(Value::as_u64);
    let next_before = oldest.filter(|oldest| *oldest > 1);
    Ok(json_answer(&json!({ "chain": chain, "receipts": receipts, "next_before": next_before })))
}

pub(super) async fn stop(State(desk): State<Arc<Desk>>) -> Result<Response, Refusal> {
    let stopping = at_once(move || {
        let was_active = estop::is_set(&desk.home);
        estop::set(&desk.home)?;
        desk.tell(Event::EstopSet { channel: CHANNEL });
        Ok::<_, std::io::Error>(was_active)
    });
    let was_active = stopping.await?.map_err(|error| failed("estop", &error))?;
    Ok(json_answer(&json!({ "active": true, "was_active": was_active })))
}

pub(super) async fn go_on(State(desk): State<Arc<Desk>>) -> Result<Response, Refusal> {
    let clearing = at_once(move || {
        let was_active = estop::clear(&desk.home)?;
        if was_active {
            desk.tell(Event::EstopCleared { channel: CHANNEL });
        }
        Ok::<_, std::io::Error>(was_active)
    });
    let was_active = clearing.await?.map_err(|error| failed("estop", &error))?;
    Ok(json_answer(&json!({ "active": false, "was_active": was_active })))
}

fn failed(code: &'static str, error: &dyn std::error::Error) -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, code, Chain(error).to_string())
}
