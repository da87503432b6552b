//! Limits of what one kernel may become.

use perpetua_ir::front::rust::Instantiation;

use crate::run::lowered;

/// Code that grows with each level is refused when it is too much, and not when the machine gives up.
#[test]
fn code_that_doubles_is_refused_early() {
    let found = |text: &str| {
        lowered(text, "k", &Instantiation::default())
            .err()
            .unwrap_or_default()
    };
    let levels = (1..40).map(|i| {
        format!(
            "#[device] fn a{i}(x: &mut u32) {{ a{}(x); a{}(x); }}",
            i - 1,
            i - 1
        )
    });
    let functions = levels.collect::<String>();
    let text = format!(
        "#[device] fn a0(x: &mut u32) {{ *x += 1; }} {functions} #[kernel] fn k(y: &mut [u32]) {{ a39(&mut y[0]); }}"
    );
    assert!(
        found(&text).contains("more than 65536 calls of closures"),
        "{}",
        found(&text)
    );
    let closures = (1..40).map(|i| format!("let f{i} = |x: u32| f{}(f{}(x));", i - 1, i - 1));
    let closures = closures.collect::<String>();
    let text =
        format!("#[kernel] fn k(y: &mut [u32]) {{ let f0 = |x: u32| x + 1; {closures} y[0] = f39(1); }}");
    assert!(
        found(&text).contains("more than 65536 calls of closures"),
        "{}",
        found(&text)
    );
    let parts = (0..24).map(|i| format!("Either::Left(a{i}) | Either::Right(a{i}),"));
    let parts = parts.collect::<String>();
    let text = format!(
        "#[derive(Clone, Copy, GpuType)] enum Either {{ Left(u32), Right(u32) }} \
         #[kernel] fn k(y: &mut [u32]) {{ let e = [Either::Left(y[0]); 24]; y[1] = match e {{ [{parts}] => a0 + a23 }}; }}"
    );
    assert!(
        found(&text).contains("more than 256 patterns without `|`"),
        "{}",
        found(&text)
    );
}
