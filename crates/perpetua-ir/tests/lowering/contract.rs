//! The contract with the macros, by what a macro would expand: encoded trees, names resolved by Rust code.

use perpetua_cpu::interp::{Arg, BufferRef};
use perpetua_ir::front::rust::{
    ConstValue, DeviceImpl, FieldDesc, FunctionDef, GpuConst, GpuType, GpuValue, Instantiation, Resolver,
    TypeDesc, lower,
};
use perpetua_ir::verify::verify;
use perpetua_syntax::{FunctionKind, Scalar, encode, parse};

use crate::run::launch;

const DT: f32 = 0.5;
const OFFSETS: [(i32, u8); 2] = [(-1, 3), (1, 4)];

#[derive(Clone, Copy)]
#[repr(C)]
struct Particle {
    kind: Kind,
    v: [f32; 2],
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    Slow = 1,
    #[expect(dead_code, reason = "kernels make it")]
    Fast = 200,
}

// SAFETY: each field of the `repr(C)` struct is described with its offset and type.
unsafe impl GpuType for Particle {
    fn describe() -> TypeDesc {
        TypeDesc::of_struct::<Self>(
            "Particle",
            false,
            vec![
                FieldDesc {
                    name: "kind".into(),
                    ty: Kind::describe(),
                    offset: core::mem::offset_of!(Self, kind),
                },
                FieldDesc {
                    name: "v".into(),
                    ty: <[f32; 2]>::describe(),
                    offset: core::mem::offset_of!(Self, v),
                },
            ],
        )
    }
}

impl GpuValue for Particle {
    const ZEROED: Self = Particle {
        kind: Kind::Slow,
        v: [0.0; 2],
    };
}

impl GpuConst for Particle {
    fn to_const(&self) -> ConstValue {
        ConstValue::of_struct(&Self::describe(), vec![self.kind.to_const(), self.v.to_const()])
    }
    fn const_type() -> Option<TypeDesc> {
        Some(Self::describe())
    }
}

// SAFETY: the variants of the `repr(u8)` enum are described with their values.
unsafe impl GpuType for Kind {
    fn describe() -> TypeDesc {
        TypeDesc::of_enum::<Self>("Kind", Scalar::U8, &[("Slow", 1), ("Fast", 200)])
    }
}

impl GpuValue for Kind {
    const ZEROED: Self = Kind::Slow;
}

impl GpuConst for Kind {
    fn to_const(&self) -> ConstValue {
        ConstValue::of_enum(&Self::describe(), *self as i128)
    }
    fn const_type() -> Option<TypeDesc> {
        Some(Self::describe())
    }
}

/// A function as a macro embeds it; `resolve` must match the order of the tree's paths, which `paths` states.
fn embedded(item: &str, kind: FunctionKind, paths: &[&str], resolve: fn(&mut Resolver)) -> FunctionDef {
    embedded_in("src/lib.rs", item, kind, paths, resolve)
}

fn embedded_in(
    file: &str,
    item: &str,
    kind: FunctionKind,
    paths: &[&str],
    resolve: fn(&mut Resolver),
) -> FunctionDef {
    let item: syn::ItemFn = syn::parse_str(item).unwrap();
    let read = parse::read_function(&item, kind, file).unwrap();
    let found: Vec<String> = read.tree.paths.iter().map(|p| p.text()).collect();
    assert_eq!(found, paths);
    FunctionDef::new(Box::leak(encode(&read.tree).into_boxed_slice()), resolve)
}

fn speed() -> FunctionDef {
    embedded(
        "fn speed(p: Particle, by: f32) -> f32 { p.v[0] * by + p.v[1] }",
        FunctionKind::Device,
        &["Particle"],
        |r| r.ty::<Particle>(0),
    )
}

/// As `#[device] fn kick(&mut self, …)` in `impl Particle`.
fn kick() -> FunctionDef {
    embedded(
        "fn kick(self_: &mut Particle, by: f32) { self_.v[1] += by; self_.kind = Kind::Fast; }",
        FunctionKind::Device,
        &["Particle", "Kind"],
        |r| {
            r.ty::<Particle>(0);
            r.ty::<Kind>(1);
        },
    )
}

perpetua_ir::front::rust::inventory::submit! {
    DeviceImpl::new(|members| members.block::<Particle>(None).function("kick", kick()))
}

#[test]
fn names_mean_what_rust_code_says() {
    let def = embedded(
        "fn step(ps: &mut [Particle], out: &mut [f32]) {
            let i = global_id_x();
            let mut p = ps[i];
            p.kick(DT);
            ps[i].kick(OFFSETS[i].0 as f32);
            out[i] = speed(p, DT) + match ps[i].kind { Kind::Slow => 100.0, Kind::Fast => 200.0 };
        }",
        FunctionKind::Kernel,
        &["Particle", "DT", "OFFSETS", "speed", "Kind"],
        |r| {
            r.ty::<Particle>(0);
            r.constant(1, &DT);
            r.constant(2, &OFFSETS);
            r.device(3, speed());
            r.ty::<Kind>(4);
        },
    );
    let kernel = lower(&def, &Instantiation::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(&*kernel.source, "src/lib.rs");
    let kernel = verify(kernel).unwrap();
    // kind, padding, v[0], v[1].
    let mut ps = [1.0f32, 2.0, 3.0, 4.0];
    let mut bytes = [0u32; 6];
    for (i, v) in ps.chunks(2).enumerate() {
        bytes[i * 3] = 1;
        bytes[i * 3 + 1] = v[0].to_bits();
        bytes[i * 3 + 2] = v[1].to_bits();
    }
    assert_eq!(size_of::<Particle>(), 12);
    let mut out = [0.0f32; 2];
    let args = [
        Arg::Buffer(BufferRef::from_slice(&mut bytes)),
        Arg::Buffer(BufferRef::from_slice(&mut out)),
    ];
    launch(&kernel, [1, 1, 1], [2, 1, 1], &args).unwrap();
    assert_eq!(out, [1.0 * DT + 2.5 + 200.0, 3.0 * DT + 4.5 + 200.0]);
    ps[1] += -1.0;
    ps[3] += 1.0;
    assert_eq!(
        (f32::from_bits(bytes[2]), f32::from_bits(bytes[5])),
        (ps[1], ps[3])
    );
    assert_eq!((bytes[0] & 0xff, bytes[3] & 0xff), (200, 200));
}

#[test]
fn bytes_are_checked_against_descriptions() {
    let check = |bytes: [u8; 12], expected: Option<&str>| {
        let found = Particle::describe()
            .check_bytes(&bytes)
            .err()
            .map(|e| e.to_string());
        assert_eq!(found.as_deref(), expected);
    };
    let mut bytes = [0u8; 12];
    bytes[0] = 200;
    check(bytes, None);
    bytes[0] = 7;
    check(
        bytes,
        Some(
            "7 at byte 0 is not a value of `Kind`: read the memory as its integer type, or write only valid values",
        ),
    );
    assert!(!Particle::describe().any_bits());
    assert!(<[f32; 4]>::describe().any_bits());
    let bools = <[bool; 3]>::describe();
    assert_eq!(
        bools.check_bytes(&[1, 0, 2]).map_err(|e| (e.offset, e.value)),
        Err((2, 2))
    );
    assert!(bools.check_bytes(&[1, 0]).is_err());
}

#[test]
fn a_layout_that_is_not_c_is_refused() {
    #[derive(Clone, Copy)]
    struct Odd;
    impl GpuConst for Odd {
        fn to_const(&self) -> ConstValue {
            ConstValue::Tuple(vec![])
        }
        fn const_type() -> Option<TypeDesc> {
            Some(Self::describe())
        }
    }
    impl GpuValue for Odd {
        const ZEROED: Self = Odd;
    }
    // SAFETY: nothing is copied by this description, which says that a field lies where C would not put it.
    unsafe impl GpuType for Odd {
        fn describe() -> TypeDesc {
            let field = |name: &str, ty, offset| FieldDesc {
                name: name.into(),
                ty,
                offset,
            };
            let fields = vec![field("a", u8::describe(), 4), field("b", u32::describe(), 0)];
            TypeDesc::Struct(std::sync::Arc::new(perpetua_ir::front::rust::StructDesc {
                key: perpetua_ir::front::rust::TypeKey::Source("Odd".into()),
                of: None,
                default: None,
                name: "Odd".into(),
                tuple: false,
                fields,
                variants: Vec::new(),
                size: 8,
                align: 4,
            }))
        }
    }
    let def = embedded("fn k(x: &mut [Odd]) {}", FunctionKind::Kernel, &["Odd"], |r| {
        r.ty::<Odd>(0)
    });
    assert_eq!(
        lower(&def, &Instantiation::default()).map_err(|e| e.to_string()),
        Err("src/lib.rs:1: the struct `Odd` is not laid out as `repr(C)`: 8 bytes instead of 8: write `#[repr(C)]` on it".into())
    );
}

#[test]
fn damaged_trees_are_refused() {
    let def = FunctionDef::new(&[], |_| {});
    let text = lower(&def, &Instantiation::default()).unwrap_err().to_string();
    assert!(text.contains("the encoded function is empty"), "{text}");
}

#[test]
fn lines_stay_in_the_kernels_file() {
    // In another file: inlined, and its faults carry the line of the call.
    fn third() -> FunctionDef {
        embedded_in(
            "src/other.rs",
            "fn third(a: i32, b: i32) -> i32 {\n\n\n\n\n\n    a / b\n}",
            FunctionKind::Device,
            &[],
            |_| {},
        )
    }
    let def = embedded(
        "fn k(x: &mut [i32]) {\n    let a = x[0];\n    x[1] = third(a, a);\n}",
        FunctionKind::Kernel,
        &["third"],
        |r| r.device(0, third()),
    );
    let kernel = lower(&def, &Instantiation::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(kernel.functions.is_empty());
    let kernel = verify(kernel).unwrap();
    let mut x = [0i32, 0];
    let args = [Arg::Buffer(BufferRef::from_slice(&mut x))];
    let text = launch(&kernel, [1, 1, 1], [1, 1, 1], &args)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("by zero: the dividend is 0 (kernel `k`, src/lib.rs:3"),
        "{text}"
    );
}
