//! What a description asks the host's compiler about a type: its order, its `Default`.

use std::sync::Arc;

use super::{ConstValue, TypeDesc};

impl TypeDesc {
    /// The description of an enum whose `PartialOrd` is asked by `in_order` whether it compares the numbers that store it.
    #[must_use]
    pub fn ordered(mut self, in_order: fn() -> bool) -> TypeDesc {
        if let TypeDesc::Enum(desc) = &mut self
            && let Some(desc) = Arc::get_mut(desc)
        {
            desc.in_order = Some(in_order);
        }
        self
    }

    /// The description of a type whose `Default`, if it has one, `default` gives.
    #[must_use]
    pub fn with_default(mut self, default: fn() -> Option<ConstValue>) -> TypeDesc {
        match &mut self {
            TypeDesc::Struct(desc) => {
                if let Some(desc) = Arc::get_mut(desc) {
                    desc.default = Some(default);
                }
            }
            TypeDesc::Enum(desc) => {
                if let Some(desc) = Arc::get_mut(desc) {
                    desc.default = Some(default);
                }
            }
            _ => {}
        }
        self
    }
}
