//! What a server answers, as the model gets it.

use collieclaw::mcp::line::Answer;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

pub(crate) fn told(result: &CallToolResult) -> Answer {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    // What is structured is in the text as well, unless there is no text.
    if parts.is_empty() {
        parts.extend(result.structured_content.as_ref().map(ToString::to_string));
    }
    Answer::Told { text: parts.join("\n"), worked: result.is_error != Some(true) }
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => not_shown("image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => not_shown("audio", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, blob, .. } => not_shown("file", uri, blob.len()),
            _ => "[something that is not shown]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{} at {}]", link.name, link.uri),
        _ => "[something that is not shown]".to_owned(),
    }
}

fn not_shown(what: &str, of: &str, length: usize) -> String {
    format!("[{what}, {of}, {length} letters of base64: not shown]")
}
