//! The section of traces: where the server sends what it does.

use crate::key::section;
use crate::secret::Secret;

section! {
    /// Traces of the server, for OpenTelemetry.
    TelemetrySettings at telemetry named "telemetry" {
        /// The collector that traces go to, such as `http://localhost:4318`; `/v1/traces` is added
        /// to it. It must take OTLP as `http/protobuf`. Unset means that there are no traces.
        endpoint: Option<String> = None, env "OTEL_EXPORTER_OTLP_ENDPOINT";
        /// The same as a complete address.
        traces_endpoint: Option<String> = None, env "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        /// Headers for the collector: `name=value`, separated by commas.
        headers: Option<Secret> = None,
            env "OTEL_EXPORTER_OTLP_HEADERS", env "OTEL_EXPORTER_OTLP_TRACES_HEADERS";
        /// The name of the server in traces.
        service_name: String = "zareba".to_owned(), env "OTEL_SERVICE_NAME";
    }
}

impl TelemetrySettings {
    /// The address that takes traces, if there is one.
    pub fn traces_url(&self) -> Option<String> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        given(&self.traces_endpoint).or_else(|| {
            let endpoint = given(&self.endpoint)?;
            Some(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_address_is_stronger_than_that_of_the_collector() {
        let url = |endpoint: Option<&str>, traces: Option<&str>| {
            let settings = TelemetrySettings {
                endpoint: endpoint.map(str::to_owned),
                traces_endpoint: traces.map(str::to_owned),
                ..TelemetrySettings::default()
            };
            settings.traces_url()
        };
        assert_eq!(url(None, None), None);
        assert_eq!(url(Some(""), Some("")), None);
        assert_eq!(
            url(Some("http://c:4318/"), None).as_deref(),
            Some("http://c:4318/v1/traces")
        );
        assert_eq!(
            url(Some("http://c:4318"), Some("https://d/x")).as_deref(),
            Some("https://d/x")
        );
    }
}
