//! A bound on how deeply trees nest, so that neither source text nor damaged bytes can exhaust the stack of
//! whoever walks a tree recursively.

use std::cell::Cell;

/// How deeply expressions, types and patterns may nest, all together.
///
/// Chosen so that a walk with 10 KiB of stack a level fits the 2 MiB that a thread has.
pub const MAX_NESTING: u32 = 128;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Stands for one level of nesting on this thread, from [`Level::enter`] to its drop.
pub(crate) struct Level(());

impl Level {
    /// One level more; `None` at the bound.
    pub(crate) fn enter() -> Option<Self> {
        DEPTH.with(|depth| {
            (depth.get() < MAX_NESTING).then(|| {
                depth.set(depth.get() + 1);
                Self(())
            })
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get().saturating_sub(1)));
    }
}

/// Implements serde's traits through the remote derive of the same type, each value one [`Level`].
macro_rules! guarded_serde {
    ($ty:ident) => {
        impl serde::Serialize for $ty {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $ty {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let _level = crate::nesting::Level::enter()
                    .ok_or_else(|| <D::Error as serde::de::Error>::custom("nested too deeply"))?;
                Self::deserialize(deserializer)
            }
        }
    };
}
pub(crate) use guarded_serde;
