//! Cases as a proptest strategy: proptest shrinks the tape.

use proptest::prelude::*;

use super::{Case, Choices, Config, generate};

/// Random cases. Proptest's shrinking makes the tape of decisions shorter and its numbers smaller.
pub fn cases(config: Config) -> impl Strategy<Value = Case> {
    let length = config.statements * 30;
    proptest::collection::vec(any::<u32>(), length / 10..=length)
        .prop_filter_map("the generator failed", move |tape| {
            generate(&config, &mut Choices::new(&tape)).ok()
        })
}
