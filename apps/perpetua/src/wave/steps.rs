//! How many steps a run has. Must not know runs.

use perpetua::wave::{Error, Model, Part, Scene};

use super::{Args, Failure, Source};

/// How many steps a run has in all.
pub(super) fn steps_of(args: &Args, source: &Source, scene: &Scene, model: &Model) -> Result<u64, Failure> {
    // More take longer than machines last, and floats no longer count them one by one.
    const MOST: u64 = 1 << 53;
    match args.steps.unwrap_or_else(|| scene.steps(model)) {
        steps if steps < MOST => Ok(steps),
        _ => Err(match args.steps {
            Some(steps) => format!("--steps {steps}: at most {MOST} are counted").into(),
            None => source.wrong(
                args,
                Error::Range {
                    subject: "the duration".into(),
                    found: format!("{:e} s", scene.duration),
                    needed: format!(
                        "it takes more than {MOST} time steps of {:.3e} s: say how many with --steps, or mend the scene",
                        model.time_step
                    ),
                    part: Some(Part::Duration),
                },
            ),
        }),
    }
}
