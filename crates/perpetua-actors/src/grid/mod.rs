//! Handlers that stay on a device: the host's side. [`Commons`] is what all grids of a device share, [`Grid`] the homes of one
//! handler's actors, `port` the host's end of a home's rings. Must not know runtimes.

mod commons;
mod homes;
mod port;
mod watch;

pub use commons::{Commons, Shape};
pub use homes::{Grid, GridImage, GridOptions};
pub use watch::GridReport;
