//! The identity of a kernel function: a hash of all that its IR depends on. Equal in every process, so it is a cache's
//! key on disk: no addresses, no `TypeId`s, no order of hash tables.

use std::fmt::Write;
use std::sync::OnceLock;

use perpetua_device::KernelId;
use perpetua_ir::front::rust::{
    ConstValue, FieldType, FunctionDef, FunctionKey, GenericStruct, GenericValue, Instantiation, Members,
    Resolutions, Resolved, TypeDesc,
};

/// The identity of the kernel that lowering gives for this function and instantiation. The pointer width is left
/// out, since whoever compiles chooses it. `native`: whether it has native code, which a compiled kernel keeps.
pub(super) fn identity(function: &FunctionDef, how: &Instantiation, native: bool) -> KernelId {
    let mut content = Content::default();
    content.function(function);
    content.bytes.extend(of_members());
    for generic in &how.generics {
        match generic {
            GenericValue::Type(ty) => content.ty(ty),
            GenericValue::Const(value) => content.constant(value),
            GenericValue::Function(function) => content.function(function),
        }
    }
    let Instantiation {
        generics: _,
        pointer_width: _,
        contract,
        checks,
        block_size,
        stencil,
    } = how;
    content.text(format_args!(
        "{contract} {checks:?} {block_size:?} {stencil:?} {native}"
    ));
    KernelId::of(&[env!("CARGO_PKG_VERSION").as_bytes(), &content.bytes])
}

/// The members of the program's types: what a kernel finds there depends on its types, so all of them count.
fn of_members() -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    CONTENT.get_or_init(|| {
        let members = Members::of_program();
        let known = members.iter().map(|(ty, name, member)| {
            let mut content = Content::default();
            content.ty(ty);
            content.text(format_args!("{name} {:?}", member.of_trait));
            content.meaning(&member.meaning);
            content.bytes
        });
        let generic = members.iter_generic().map(|(name, member)| {
            let mut content = Content::default();
            content.text(format_args!("{name} {:?} {:?}", member.of_trait, member.kind));
            content.function(&member.block);
            content.function(&member.definition);
            content.bytes
        });
        let mut all: Vec<Vec<u8>> = known.chain(generic).collect();
        all.sort_unstable();
        all.concat()
    })
}

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    seen: Vec<FunctionKey>,
}

impl Content {
    /// Text and an end mark that no text contains.
    fn text(&mut self, text: std::fmt::Arguments<'_>) {
        struct Bytes<'a>(&'a mut Vec<u8>);
        impl Write for Bytes<'_> {
            fn write_str(&mut self, text: &str) -> std::fmt::Result {
                self.0.extend_from_slice(text.as_bytes());
                Ok(())
            }
        }
        // A vector takes every piece of text.
        let _ = Bytes(&mut self.bytes).write_fmt(text);
        self.bytes.push(0);
    }

    fn function(&mut self, function: &FunctionDef) {
        if let Some(at) = self.seen.iter().position(|key| *key == function.key()) {
            return self.text(format_args!("function {at}"));
        }
        self.seen.push(function.key());
        let tree = match function.tree() {
            Ok(tree) => tree,
            // Lowering reports it; until then one damaged function is as good as another.
            Err(error) => return self.text(format_args!("{error}")),
        };
        let encoded = perpetua_syntax::encode(&tree);
        self.text(format_args!("{}", encoded.len()));
        self.bytes.extend(encoded);
        self.names(&function.resolve(), tree.paths.len());
    }

    fn names(&mut self, names: &Resolutions, paths: usize) {
        if let Some(own) = names.self_type() {
            self.ty(own);
        }
        for path in 0..paths as u32 {
            match names.path(path) {
                None => self.text(format_args!("unknown")),
                Some(meaning) => self.meaning(meaning),
            }
        }
    }

    fn meaning(&mut self, meaning: &Resolved) {
        match meaning {
            Resolved::Const(value) => self.constant(value),
            Resolved::Type(ty) => self.ty(ty),
            Resolved::Device(function) | Resolved::Computed(function) => self.function(function),
            Resolved::GenericStruct(of) => self.generic_struct(of),
            Resolved::Refused { cause, remedy } => self.text(format_args!("{cause} {remedy}")),
        }
    }

    fn generic_struct(&mut self, of: &GenericStruct) {
        let (name, tuple, params) = (&of.name, of.tuple, &of.params);
        self.text(format_args!("generic {name} {tuple} {params:?}"));
        for (name, ty) in &of.fields {
            self.text(format_args!("{name}"));
            self.field(ty);
        }
    }

    fn field(&mut self, ty: &FieldType) {
        match ty {
            FieldType::Known(ty) => self.ty(ty),
            FieldType::Const(bits) => self.text(format_args!("const {bits}")),
            FieldType::Param(index) => self.text(format_args!("param {index}")),
            FieldType::Array(parts) => {
                self.text(format_args!("array"));
                self.field(&parts.0);
                self.field(&parts.1);
            }
            FieldType::Tuple(parts) => {
                self.text(format_args!("tuple {}", parts.len()));
                parts.iter().for_each(|part| self.field(part));
            }
            FieldType::Option(some) => {
                self.text(format_args!("option"));
                self.field(some);
            }
            FieldType::Result(both) => {
                self.text(format_args!("result"));
                both.iter().for_each(|part| self.field(part));
            }
            FieldType::Instance(of, args) => {
                self.generic_struct(of);
                args.iter().for_each(|arg| self.field(arg));
            }
        }
    }

    fn ty(&mut self, ty: &TypeDesc) {
        match ty {
            TypeDesc::Scalar(s) => self.text(format_args!("{}", s.name())),
            TypeDesc::Array(element, len) => {
                self.text(format_args!("array {len}"));
                self.ty(element);
            }
            TypeDesc::Struct(s) => {
                self.text(format_args!(
                    "struct {} {} {} {} {}",
                    s.name,
                    s.tuple,
                    s.fields.len(),
                    s.size,
                    s.align
                ));
                for field in &s.fields {
                    self.text(format_args!("{} {}", field.name, field.offset));
                    self.ty(&field.ty);
                }
            }
            TypeDesc::Enum(e) => {
                self.text(format_args!("enum {} {} {:?}", e.name, e.repr.name(), e.variants));
            }
            TypeDesc::Tuple(elements) => {
                self.text(format_args!("tuple {}", elements.len()));
                elements.iter().for_each(|element| self.ty(element));
            }
            TypeDesc::Option(some) => {
                self.text(format_args!("option"));
                self.ty(some);
            }
            TypeDesc::Result(both) => {
                self.text(format_args!("result"));
                both.iter().for_each(|part| self.ty(part));
            }
        }
    }

    fn constant(&mut self, value: &ConstValue) {
        match value {
            ConstValue::Scalar(s, bits) => self.text(format_args!("{} {bits}", s.name())),
            ConstValue::Wide(s, bits) => self.text(format_args!("{} {bits}", s.name())),
            ConstValue::Enum(e, value) => {
                self.ty(&TypeDesc::Enum(e.clone()));
                self.text(format_args!("{value}"));
            }
            ConstValue::Array(element, values) => {
                self.ty(element);
                self.text(format_args!("{}", values.len()));
                values.iter().for_each(|value| self.constant(value));
            }
            ConstValue::Tuple(values) => {
                self.text(format_args!("tuple {}", values.len()));
                values.iter().for_each(|value| self.constant(value));
            }
            ConstValue::Standard(ty, parts) => {
                self.ty(ty);
                parts.iter().for_each(|part| self.constant(part));
            }
            ConstValue::Struct(s, fields) => {
                self.ty(&TypeDesc::Struct(s.clone()));
                fields.iter().for_each(|field| self.constant(field));
            }
        }
    }
}
