//! Parses Sway's messages about windows. Only the needed fields are read, so that other versions may send more.

use serde::Deserialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwayWindow {
    /// Sway's id. A newer window has a higher id.
    pub(super) id: i64,
    /// The process that the window belongs to.
    pub(super) pid: i32,
    /// True for windows above the others: dialogs, and windows of a fixed size.
    pub(super) is_floating: bool,
    pub(super) is_fullscreen: bool,
}

#[derive(Deserialize)]
struct SwayNode {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
    /// The process. Only windows have one.
    pid: Option<i32>,
    #[serde(default)]
    fullscreen_mode: u8,
    #[serde(default)]
    nodes: Vec<SwayNode>,
    #[serde(default)]
    floating_nodes: Vec<SwayNode>,
}

#[derive(Deserialize)]
struct SwayWindowEvent {
    change: String,
}

/// Returns all windows of a layout tree.
pub(super) fn parse_windows(tree: &[u8]) -> serde_json::Result<Vec<SwayWindow>> {
    let mut found = Vec::new();
    let mut nodes = vec![serde_json::from_slice::<SwayNode>(tree)?];
    while let Some(node) = nodes.pop() {
        if let Some(pid) = node.pid {
            let (is_floating, is_fullscreen) = (node.kind == "floating_con", node.fullscreen_mode != 0);
            found.push(SwayWindow { id: node.id, pid, is_floating, is_fullscreen });
        }
        nodes.extend(node.nodes.into_iter().chain(node.floating_nodes));
    }
    Ok(found)
}

/// Returns whether an event may change which window belongs in front. Other events don't count, because a program can
/// change its title as often as it likes.
pub(super) fn affects_layout(event: &[u8]) -> serde_json::Result<bool> {
    let event: SwayWindowEvent = serde_json::from_slice(event)?;
    Ok(matches!(event.change.as_str(), "new" | "close" | "floating" | "fullscreen_mode" | "move"))
}

/// Returns the window of a program that belongs in front: the newest, but a dialog only if there is no other window.
pub(super) fn front_window(windows: impl Iterator<Item = SwayWindow>) -> Option<SwayWindow> {
    windows.max_by_key(|window| (!window.is_floating, window.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = r#"{ "id": 1, "type": "root", "nodes": [{ "id": 3, "type": "output", "nodes": [
        { "id": 4, "type": "workspace", "fullscreen_mode": 1, "nodes": [
            { "id": 5, "type": "con", "pid": 70, "fullscreen_mode": 1, "nodes": [], "app_id": "foot" },
            { "id": 6, "type": "con", "nodes": [{ "id": 8, "type": "con", "pid": 71 }] }],
          "floating_nodes": [{ "id": 9, "type": "floating_con", "pid": 70 }] }] }] }"#;

    #[test]
    fn every_node_with_a_process_is_a_window() {
        let mut found = parse_windows(TREE.as_bytes()).unwrap();
        found.sort_unstable_by_key(|window| window.id);
        let window = |id, pid, is_floating, is_fullscreen| SwayWindow { id, pid, is_floating, is_fullscreen };
        assert_eq!(
            found,
            [window(5, 70, false, true), window(8, 71, false, false), window(9, 70, true, false)]
        );
        assert!(parse_windows(b"[]").is_err());
    }

    #[test]
    fn a_dialog_is_in_front_only_if_there_is_nothing_else() {
        let window = |id, is_floating| SwayWindow { id, pid: 1, is_floating, is_fullscreen: false };
        let check = |windows: &[SwayWindow]| front_window(windows.iter().copied()).map(|window| window.id);
        assert_eq!(check(&[]), None);
        assert_eq!(check(&[window(5, false), window(9, true)]), Some(5));
        assert_eq!(check(&[window(7, false), window(5, false)]), Some(7));
        assert_eq!(check(&[window(7, true), window(9, true)]), Some(9));
    }

    #[test]
    fn a_changed_title_does_not_refresh_the_windows() {
        let check = |change: &str| affects_layout(format!(r#"{{"change":"{change}"}}"#).as_bytes()).unwrap();
        assert!(check("new") && check("close") && check("fullscreen_mode"));
        assert!(!check("title") && !check("focus"));
    }
}
