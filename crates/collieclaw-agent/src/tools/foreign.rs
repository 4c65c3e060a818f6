//! The adapter for external tools: plugins and MCP servers.

use serde_json::Value;

use super::{BadArguments, PreparedCall, Tool, schema};

/// Creates a call from arguments that match the schema.
type CallFactory = Box<dyn Fn(&Value) -> Box<dyn PreparedCall>>;

/// An external tool: its description, and a function that makes calls.
pub struct ForeignTool {
    pub name: String,
    pub description: String,
    pub schema: Value,
    pub make_call: CallFactory,
}

impl Tool for ForeignTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters_schema(&self) -> Value {
        self.schema.clone()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn PreparedCall>, BadArguments> {
        schema::check_arguments(&self.schema, arguments)
            .map_err(|fault| BadArguments::new(&self.name, &fault))?;
        Ok((self.make_call)(arguments))
    }
}
