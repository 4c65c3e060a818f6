//! A tool of others, whatever it is made of.

use serde_json::Value;

use super::{BadArguments, Prepared, Tool, schema};

/// Makes a call of arguments that fit.
type MakeCall = Box<dyn Fn(&Value) -> Box<dyn Prepared>>;

/// What it says of itself, and what a call with arguments that fit becomes.
pub(crate) struct ForeignTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) call: MakeCall,
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

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn Prepared>, BadArguments> {
        schema::check(&self.schema, arguments).map_err(|fault| BadArguments::new(&self.name, &fault))?;
        Ok((self.call)(arguments))
    }
}
