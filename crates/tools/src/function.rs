//! [`FunctionTool`]: a function of Rust as a tool.

use std::{fmt, marker::PhantomData};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use zareba_wire::BoxFuture;

use crate::{
    Arguments, Call, Exception, Origin, Returned, Tool, ToolDefinition, ToolError, ToolName,
};

/// A function of Rust as a tool. Its schema is that of its arguments' type; what it fails with is
/// what an exception is elsewhere. The macro [`tool!`](crate::tool) makes one of a plain function.
///
/// ```
/// use zareba_tools::{FunctionTool, Tool as _};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum {
///     a: i64,
///     b: i64,
/// }
///
/// let add = FunctionTool::new("add", "Adds two numbers.", |sum: Sum| async move {
///     Ok::<_, String>(sum.a + sum.b)
/// })?;
/// assert_eq!(add.definition().parameters["required"], serde_json::json!(["a", "b"]));
/// # Ok::<(), zareba_tools::ToolError>(())
/// ```
pub struct FunctionTool<F, Args> {
    definition: ToolDefinition,
    function: F,
    arguments: PhantomData<fn(Args)>,
}

impl<F, Args> FunctionTool<F, Args>
where
    Args: JsonSchema,
{
    /// A tool of that name, which calls the function.
    ///
    /// # Errors
    /// When the name is none.
    pub fn new<Future, Out, Error>(
        name: &str,
        description: &str,
        function: F,
    ) -> Result<Self, ToolError>
    where
        F: Fn(Args) -> Future,
        Future: std::future::Future<Output = Result<Out, Error>>,
    {
        let settings = SchemaSettings::draft2020_12().for_deserialize();
        let mut schema = settings.into_generator().into_root_schema_for::<Args>();
        // They describe the type of Rust, which is nothing to a caller.
        for key in ["$schema", "title", "description"] {
            schema.remove(key);
        }
        // A type that takes anything has a schema that is no object.
        let parameters = match schema.to_value() {
            Value::Object(schema) if !schema.is_empty() => Value::Object(schema),
            _ => json!({ "type": "object" }),
        };
        Ok(Self {
            definition: ToolDefinition {
                name: ToolName::try_from(name)?,
                description: description.trim().to_owned(),
                parameters,
                accepts: None,
                origin: Origin::Rust,
            },
            function,
            arguments: PhantomData,
        })
    }
}

impl<F, Args, Future, Out, Error> Tool for FunctionTool<F, Args>
where
    F: Fn(Args) -> Future + Send + Sync,
    Future: std::future::Future<Output = Result<Out, Error>> + Send,
    Args: DeserializeOwned + Send,
    Out: Serialize,
    Error: fmt::Display,
{
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Returned, ToolError>> {
        Box::pin(async move {
            let tool = self.definition.name.to_string();
            let arguments = Value::Object(by_name(&self.definition.parameters, call.arguments));
            let arguments = match serde_json::from_value(arguments) {
                Ok(arguments) => arguments,
                Err(error) => {
                    let problems = vec![error.to_string()];
                    return Err(ToolError::Invalid { tool, problems });
                }
            };
            let out = match (self.function)(arguments).await {
                Ok(out) => out,
                Err(error) => return Err(raised::<Error>(tool, &error)),
            };
            match serde_json::to_string(&out) {
                Ok(json) => Ok(Returned {
                    json,
                    ..Returned::default()
                }),
                Err(error) => Err(raised::<serde_json::Error>(tool, &error)),
            }
        })
    }
}

fn raised<Error>(tool: String, error: &dyn fmt::Display) -> ToolError {
    let kind = std::any::type_name::<Error>();
    ToolError::Raised(Box::new(Exception {
        tool,
        kind: kind.rsplit("::").next().unwrap_or(kind).to_owned(),
        message: error.to_string(),
        ..Exception::default()
    }))
}

/// Arguments by position get the names of the schema, in its order.
pub(crate) fn by_name(schema: &Value, arguments: Arguments) -> Map<String, Value> {
    let mut named = arguments.named;
    let names = schema.get("properties").and_then(Value::as_object);
    let names = names.into_iter().flat_map(Map::keys);
    for (name, value) in names.zip(arguments.positional) {
        named.insert(name.clone(), value);
    }
    named
}

impl<F, Args> fmt::Debug for FunctionTool<F, Args> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.definition.name;
        formatter.debug_tuple("FunctionTool").field(name).finish()
    }
}

/// Makes a tool of a function: its name, its documentation and those of its parameters are what a
/// language model reads. What stands there afterwards is a function without arguments that
/// returns the tool.
///
/// ```
/// zareba_tools::tool! {
///     /// Adds two numbers.
///     pub async fn add(
///         /// The first one.
///         a: i64,
///         b: i64,
///     ) -> Result<i64, String> {
///         Ok(a + b)
///     }
/// }
///
/// let registry = zareba_tools::Registry::new();
/// registry.add(add()?)?;
/// assert_eq!(registry.list()[0].description, "Adds two numbers.");
/// # Ok::<(), zareba_tools::ToolError>(())
/// ```
#[macro_export]
macro_rules! tool {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis async fn $name:ident(
            $($(#[doc = $about:literal])* $argument:ident: $type:ty),* $(,)?
        ) -> $out:ty $body:block
    ) => {
        $(#[doc = $doc])*
        $visibility fn $name() -> ::std::result::Result<
            ::std::sync::Arc<dyn $crate::Tool>,
            $crate::ToolError,
        > {
            #[derive($crate::serde::Deserialize, $crate::schemars::JsonSchema)]
            #[serde(crate = "zareba_tools::serde", deny_unknown_fields)]
            #[schemars(crate = "zareba_tools::schemars")]
            struct Arguments {
                $($(#[doc = $about])* $argument: $type),*
            }
            let description = [$($doc),*].map(str::trim).join("\n");
            let function = |arguments: Arguments| async move {
                let Arguments { $($argument),* } = arguments;
                let run = async move || -> $out { $body };
                run().await
            };
            let tool = $crate::FunctionTool::new(stringify!($name), &description, function)?;
            ::std::result::Result::Ok(::std::sync::Arc::new(tool))
        }
    };
}
