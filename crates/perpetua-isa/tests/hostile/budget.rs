//! What loops of programs that nobody trusts are charged for.

use perpetua_isa::LaunchConfig;

use super::{each, program};

#[test]
fn known_loops_are_paid_for() {
    each(|executor| {
        // A thousand turns fit into the budget; a thousand times a thousand do not, however they are nested.
        let one = "mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 1000\n@p0 bra a";
        let two = "mov.u32 r8, 0\no: mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 1000\n@p0 bra a\n add.u32 r8, r8, 1\n \
            setlt.u32 p0, r8, 1000\n@p0 bra o";
        let met = "mov.u32 r8, 0\no: mov.u32 r9, 0\na: add.u32 r9, r9, 1\n setlt.u32 p0, r9, 1000\n@p0 bra a\n bar\n \
            setne.u32 p0, r8, 7\n@p0 bra o";
        for (text, ends) in [(one, true), (two, false), (met, false)] {
            executor
                .execute_program(&program(text), &LaunchConfig::new(2, 40))
                .expect("a launch");
            let done = executor.synchronize();
            assert_eq!(done.is_ok(), ends, "{text}: {done:?}");
        }
    });
}

#[test]
fn what_is_many_instructions_is_charged_as_many() {
    each(|executor| {
        for (instruction, fits) in [
            ("add.f32 r2, r2, 1.0", true),
            ("exp.f32 r2, r2", false),
            ("rem.u32 r3, r3, 7", true),
            ("rem.f32 r2, r2, 7.0", false),
            ("group_add.u32 r3, r3", false),
            ("bar", true),
            ("atom_add.u32 r4, x[0], 1", false),
            ("fill.u32 x[0], 1, 1", true),
            ("fill.u32 x[0], 1, 2", false),
        ] {
            let text = format!(
                ".buffer x: u32\n mov.f32 r2, 0.5\n mov.u32 r3, 1\n mov.u32 r9, 700\nagain: {instruction}\n loop r9, again"
            );
            let x = executor.allocate_buffer(16).expect("memory");
            let program = program(&text).with_buffer("x", x).expect("x");
            executor
                .execute_program(&program, &LaunchConfig::new(2, 40))
                .expect("a launch");
            let done = executor.synchronize();
            let is_spent = done
                .as_ref()
                .is_err_and(|error| error.to_string().contains("budget"));
            assert_eq!((done.is_ok(), is_spent), (fits, !fits), "{text}: {done:?}");
            executor.free_buffer(x).expect("there");
        }
    });
}
