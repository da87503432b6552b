//! Refused: types that are called like primitive ones and are others. The reader knows primitive types by name.

#![allow(warnings)]

use perpetua::prelude::*;

mod alias {
    use perpetua::prelude::*;

    type u32 = u64;

    #[kernel]
    fn wide(x: &mut [f32]) {
        let n: u32 = 1 << 40;
        x[0] = n as f32;
    }
}

mod cast {
    use perpetua::prelude::*;

    use std::primitive::i8 as i64;

    #[kernel]
    fn narrow(x: &mut [f32], n: f32) {
        x[0] = n as i64 as f32;
    }
}

mod function {
    use perpetua::prelude::*;

    type usize = u16;

    #[device]
    fn half(n: usize) -> f32 {
        n as f32 / 2.0
    }
}

// What is called like a module, too, is what it is called.
mod modules {
    use std::f32;

    use perpetua::prelude::*;

    #[kernel]
    fn turns(x: &mut [f32], n: f32) {
        x[0] = n * f32::consts::PI;
    }
}

fn main() {}
