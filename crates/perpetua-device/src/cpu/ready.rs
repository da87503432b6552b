//! Native launches that were made ready, kept with their kernel for the next launch with the same arguments. Must not know
//! how a launch is made ready or run.

use std::sync::Arc;

use super::launch::{Arg, Launch, start};
use crate::dim::LaunchConfig;
use crate::native::PreparedLaunch;
use crate::value::ValueArg;

/// Launches of a kernel that are kept ready: programs mostly launch a kernel with the same few sets of arguments.
pub(super) const KEPT: usize = 4;

/// A launch that was made ready, and what it was made of. It says where buffers lie, and keeps none alive.
pub(super) struct Ready {
    // What overlaps what follows of the arguments.
    shape: LaunchConfig,
    args: Vec<ReadyArg>,
    pub(super) prepared: Arc<dyn PreparedLaunch>,
}

enum ReadyArg {
    // Address and length.
    Buffer(usize, usize),
    Value(ValueArg),
}

impl Ready {
    pub(super) fn is_for(&self, launch: &Launch) -> bool {
        let same = |(known, arg): (&ReadyArg, &Arg)| match (known, arg) {
            (ReadyArg::Buffer(at, count), Arg::Buffer(ptr, len)) => *at == start(ptr).addr() && count == len,
            (ReadyArg::Value(known), Arg::Value(value, _)) => known.bytes() == value.bytes(),
            _ => false,
        };
        self.shape == launch.shape && self.args.iter().zip(&launch.args).all(same)
    }

    pub(super) fn of(launch: &Launch, prepared: Arc<dyn PreparedLaunch>) -> Ready {
        let arg = |arg: &Arg| match arg {
            Arg::Buffer(ptr, len) => ReadyArg::Buffer(start(ptr).addr(), *len),
            Arg::Value(value, _) => ReadyArg::Value(value.clone()),
        };
        Ready {
            shape: launch.shape,
            args: launch.args.iter().map(arg).collect(),
            prepared,
        }
    }
}
