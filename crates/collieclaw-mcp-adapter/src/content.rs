//! Formats the result of a tool call as text for the model.

use collieclaw_mcp_ipc::McpServerReply;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

pub(crate) fn format_result(result: &CallToolResult) -> McpServerReply {
    let mut parts: Vec<String> = result.content.iter().map(format_block).collect();
    // Servers repeat structured content as text, so it is needed only if there is no text.
    if parts.is_empty() {
        parts.extend(result.structured_content.as_ref().map(ToString::to_string));
    }
    McpServerReply::Told { text: parts.join("\n"), worked: result.is_error != Some(true) }
}

fn format_block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format_omitted("image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => format_omitted("audio", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format_omitted("file", uri, blob.len())
            }
            _ => "[unsupported content]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{} at {}]", link.name, link.uri),
        _ => "[unsupported content]".to_owned(),
    }
}

fn format_omitted(kind: &str, source: &str, length: usize) -> String {
    format!("[{kind} omitted: {source}, {length} bytes of base64]")
}
