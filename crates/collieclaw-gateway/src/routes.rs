//! The table of all routes; the OpenAPI document lists the same.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post};

use super::response::ErrorResponse;
use super::state::GatewayState;
use super::{approvals, chat, guard, metrics, views};

/// Returns every path with its handler. Paths that occur twice have two methods.
fn route_table() -> Vec<(&'static str, MethodRouter<Arc<GatewayState>>)> {
    vec![
        ("/", get(views::page)),
        ("/page.css", get(views::style)),
        ("/page.js", get(views::script)),
        ("/openapi.json", get(views::openapi)),
        ("/health", get(views::health)),
        ("/status", get(views::status)),
        ("/tools", get(views::tools)),
        ("/memory/search", get(views::search)),
        ("/receipts", get(views::receipts)),
        ("/metrics", get(metrics::show)),
        ("/chat", post(chat::chat)),
        ("/estop", post(views::set_estop)),
        ("/estop", delete(views::clear_estop)),
        ("/approvals", get(approvals::list)),
        ("/approvals/{id}", post(approvals::answer)),
    ]
}

pub(super) fn router(gateway: &Arc<GatewayState>) -> Router {
    let routes =
        route_table().into_iter().fold(Router::new(), |router, (path, method)| router.route(path, method));
    routes
        .fallback(|| async { ErrorResponse::new(StatusCode::NOT_FOUND, "not-found", "no such path") })
        .method_not_allowed_fallback(|| async {
            ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "method not allowed")
        })
        .layer(from_fn_with_state(Arc::clone(gateway), guard::authorize))
        .with_state(Arc::clone(gateway))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// Returns the methods of a route from the debug output of its handler.
    #[test]
    fn the_document_has_every_route_and_no_other() {
        let document: Value = serde_json::from_str(super::super::OPENAPI).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
        let mut routed = BTreeSet::new();
        for (path, method) in route_table() {
            let shown = format!("{method:?}");
            for name in ["get", "post", "delete", "put", "patch"] {
                if !shown.contains(&format!(" {name}: None")) {
                    routed.insert(format!("{} {path}", name.to_uppercase()));
                }
            }
        }
        assert_eq!(described, routed);
    }
}
