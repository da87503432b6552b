//! Grids: the host's side of resident kernels. A [`Grid`] is a launch of one handler's resident kernel (`kernels/resident.rs`), a block for
//! each *home* of its actors; [`Commons`] is what all grids of a device share, `bridge` what homes of several devices put packets into for each other, `place` what a device has for all of a process, `counts` what an actor has done, `park` how homes leave the device, `port` the host's end of a home's rings, `special` what is decided at a launch, `watch` what the
//! host learns without stopping a grid. Must not know runtimes.

mod beat;
mod bridge;
mod commons;
mod counts;
mod homes;
#[cfg(all(test, perpetua_loom))]
mod loom_models;
mod park;
mod place;
mod port;
mod special;
mod watch;

pub(crate) use commons::connect;
pub use commons::{Commons, Shape};
pub use counts::ActorCounts;
pub use homes::{Grid, GridImage, GridOptions};
pub(crate) use place::Place;
pub use watch::GridReport;
