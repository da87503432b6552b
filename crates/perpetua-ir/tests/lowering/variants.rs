//! What is refused of enums with data in text that no compiler has seen.

use perpetua_ir::front::rust::Instantiation;

use crate::run::lowered;

fn check_text(text: &str, expected: &str) {
    let found = lowered(text, "k", &Instantiation::default()).err();
    assert_eq!(found.as_deref(), Some(expected), "{text}");
}

#[test]
fn enums_with_data_are_taken_whole() {
    let check = |rest: &str, expected: &str| {
        let shape =
            "#[derive(Clone, Copy, GpuType)] enum Shape { Nothing, Circle(f32), Rect { w: f32, h: f32 } }";
        check_text(&format!("{shape} {rest}"), expected);
    };
    let in_memory = "program.rs:1: the parameter `s` holds a `Shape`, which no memory takes: pass the parts that memory \
                     takes (of an enum the number of the variant, too), and make it of them";
    check("#[kernel] fn k(s: &[Shape]) {}", in_memory);
    check("#[kernel] fn k(s: [Shape; 2]) {}", in_memory);
    let in_kernel = |body: &str, expected: &str| {
        check(&format!("#[kernel] fn k(y: &mut [f32]) {{ {body} }}"), expected);
    };
    in_kernel(
        "y[0] = match Shape::Circle(1.0) { Shape::Circle(r) => r, Shape::Nothing => 0.0 };",
        "program.rs:1: the `match` does not cover `Shape::Rect(_, _)`: add an arm `_ => …`",
    );
    in_kernel(
        "let Shape::Circle(r) = Shape::Nothing;",
        "program.rs:1: the pattern of a `let` does not cover `Shape::Nothing`: use `let … else` or `match`",
    );
    in_kernel(
        "let s = Shape::Square(1.0);",
        "program.rs:1: `Shape` has no variant `Square` with data",
    );
    in_kernel(
        "let s = Shape::Rect { w: 1.0 };",
        "program.rs:1: the field `h` of `Shape::Rect` has no value: give it one",
    );
    in_kernel(
        "if let Shape::Circle(a, b) = Shape::Nothing {}",
        "program.rs:1: a pattern of 2 fields meets `Shape::Circle`, which has 1: write `..` for the others",
    );
    in_kernel(
        "println!(\"{}\", Shape::Nothing);",
        "program.rs:1: `Shape` is printed with `{}`: write `{:?}`, or print its scalars one by one",
    );
}
