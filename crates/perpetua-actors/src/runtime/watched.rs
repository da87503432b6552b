//! What lets others look at a runtime while it lives. Must not know what they see.

use super::Settings;
use crate::error::Result;
#[cfg(feature = "prometheus")]
use crate::telemetry::PrometheusEndpoint;
use crate::telemetry::observe::{Observer, asked_by_environment, observe};
use crate::telemetry::{Reading, Registration, register};

/// Others may look while this lives.
pub(super) struct Watched {
    _registration: Registration,
    _observer: Option<Observer>,
    #[cfg(feature = "prometheus")]
    endpoint: Option<PrometheusEndpoint>,
}

impl Watched {
    /// As the runtime's settings and the environment ask; `read` reads the runtime, while it lives.
    pub(super) fn begin(
        settings: &Settings,
        read: impl Fn() -> Option<Reading> + Send + Sync + 'static,
    ) -> Result<Watched> {
        let name = settings.observable.clone().or_else(asked_by_environment);
        let observer = name.as_deref().map(observe).transpose()?;
        #[cfg(feature = "prometheus")]
        let endpoint = match &settings.prometheus {
            Some(address) => Some(PrometheusEndpoint::open(address)?),
            None => None,
        };
        let name = settings.observable.clone().unwrap_or_else(|| "runtime".into());
        Ok(Watched {
            _registration: register(name, read),
            _observer: observer,
            #[cfg(feature = "prometheus")]
            endpoint,
        })
    }
}

#[cfg(feature = "prometheus")]
impl Watched {
    /// Where Prometheus is told.
    pub(super) fn prometheus_address(&self) -> Option<std::net::SocketAddr> {
        self.endpoint.as_ref().map(PrometheusEndpoint::address)
    }
}
