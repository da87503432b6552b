//! Random kernels: what the check pass makes of them is well-formed, and the assembler takes what is written.

use crate::{GENERATIONS, assemble_for};
use perpetua_cpu::testing::{Choices, Config, generate, tape};
use perpetua_ir::pass::checks::make_explicit;
use perpetua_ir::verify::verify;

/// How many kernels; `PERPETUA_CASES` says otherwise.
fn cases() -> u64 {
    std::env::var("PERPETUA_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(24)
}

#[test]
fn random_kernels_assemble() {
    for seed in 0..cases() {
        let faults = seed % 2 == 1;
        let config = Config {
            faults,
            ..Config::full()
        };
        let tape = tape(seed, config.statements * 30);
        let case = generate(&config, &mut Choices::new(&tape)).expect("generates");
        let verified = match verify(case.kernel.clone()) {
            Ok(verified) => verified,
            Err(errors) => panic!("seed {seed}: {errors}\n{}", case.kernel),
        };
        let explicit = make_explicit(&verified);
        if let Err(errors) = verify(explicit.kernel().clone()) {
            panic!(
                "seed {seed}, explicit: {errors}\n{}\n{}",
                case.kernel,
                explicit.kernel()
            );
        }
        let generation = GENERATIONS[seed as usize % GENERATIONS.len()];
        assemble_for(&verified, generation);
    }
}
