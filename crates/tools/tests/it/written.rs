//! Tools that are written in Rust with the macro.

use serde_json::json;
use zareba_tools::{Registry, ToolError};

use crate::fixture::{returned, value};

zareba_tools::tool! {
    /// Divides.
    ///
    /// Not by zero.
    async fn divide(
        /// What is divided.
        dividend: i64,
        divisor: Option<i64>,
    ) -> Result<i64, String> {
        let divisor = divisor.unwrap_or(1);
        if divisor == 0 {
            return Err("by zero".to_owned());
        }
        Ok(dividend / divisor)
    }
}

#[tokio::test]
async fn a_function_of_rust_is_a_tool() {
    let registry = Registry::new();
    registry.add(divide().unwrap()).unwrap();
    let tool = &registry.list()[0];
    assert_eq!(tool.description, "Divides.\n\nNot by zero.");
    let about = &tool.parameters["properties"]["dividend"]["description"];
    assert_eq!(about, "What is divided.");
    assert_eq!(tool.parameters["required"], json!(["dividend"]));
    assert_eq!(
        value(&registry, "divide", json!({"dividend": 6, "divisor": 2})).await,
        3
    );
    assert_eq!(value(&registry, "divide", json!({"dividend": 6})).await, 6);
    let zero = json!({"dividend": 6, "divisor": 0});
    let error = returned(&registry, "divide", zero).await.unwrap_err();
    assert_eq!(error.to_string(), "`divide` raised String: by zero");
    let unknown = json!({"dividend": 6, "other": 1});
    let error = returned(&registry, "divide", unknown).await.unwrap_err();
    assert!(matches!(error, ToolError::Invalid { .. }), "{error}");
}
