//! Values of the columns that a resource type shows in a table.

use serde_json::Value;

use super::Definition;
use crate::jsonpath::Template;

/// Returns the values of a type's columns for a content; what is missing, or a column that cannot be read, is empty.
pub fn columns(definition: &Definition, spec: &Value) -> Vec<String> {
    let values = definition.columns.iter().map(|column| {
        let template = Template::parse(&column.json_path).ok()?;
        Some(template.render(spec))
    });
    values.map(Option::unwrap_or_default).collect()
}
