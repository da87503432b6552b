//! Front ends: what turns other forms of a program into the IR. They know the IR and not the targets.

pub mod rust;
