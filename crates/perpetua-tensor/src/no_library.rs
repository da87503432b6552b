//! Without the kernel library, which comes with the only backend that computes sooner with it: there is nothing that it computes.

use std::convert::Infallible;
use std::fmt;

use perpetua_device::{DynBuffer, Stream};

use crate::error::Result;
use crate::graph::Graph;
use crate::node::Tensor;

/// What the library computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// What it computes sooner than a generated kernel.
    Sooner,
}

/// An operation, as the library computes it: there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library(Infallible);

impl Library {
    pub(crate) fn of(_: &Graph, _: usize, _: Use) -> Option<Library> {
        None
    }

    pub(crate) fn reads(&self) -> std::iter::Empty<usize> {
        match self.0 {}
    }

    pub(crate) fn views(&self) -> &[usize] {
        match self.0 {}
    }

    pub(crate) fn launch<'a>(
        &self,
        _: &Stream,
        _: impl Fn(usize) -> Result<&'a DynBuffer>,
        _: &DynBuffer,
    ) -> Result<perpetua_device::Result<()>> {
        match self.0 {}
    }
}

impl fmt::Display for Library {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

pub(crate) fn attention(_: [&Tensor; 3], _: bool, _: Use) -> Option<Tensor> {
    None
}
