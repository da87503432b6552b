//! What the bodies of one module share while they are written: names, the types that they mention, the helper
//! functions that they call. Collects declarations in the order in which they must stand.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::Prepared;
use super::effects::{Effects, Needs};
use super::names::Names;
use super::writer::array_levels;
use crate::back::RenderError;
use crate::ir::{Base, DeviceOp, Effect, Field, Inst, Kernel, Place, StructType, Type};

/// A kernel being written.
pub(crate) struct Module<'a> {
    pub(crate) kernel: &'a Kernel,
    /// Effects of each function.
    pub(crate) effects: Vec<Effects>,
    /// Needs of each function.
    pub(crate) needs: Vec<Needs>,
    /// Needs of the kernel's body, calls included.
    pub(crate) entry_needs: Needs,
    /// Whether the kernel asks which faults its lanes have met.
    pub(crate) catches: bool,
    /// Name of the entry point.
    pub(crate) entry: String,
    /// Names of the kernel's parameters.
    pub(crate) params: Vec<String>,
    /// Names of the shared variables.
    pub(crate) shared: Vec<String>,
    /// Names of the constant tables.
    pub(crate) constants: Vec<String>,
    /// Names of the device functions.
    pub(crate) functions: Vec<String>,
    /// Name of the target, for errors.
    pub(crate) target: String,
    /// Of each shared variable's array levels, how many every access steps through.
    pub(crate) shared_flat: Vec<u32>,
    /// Before any name was given.
    no_names: Names,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    global: Names,
    /// Names that some body gave to something of its own: later globals avoid them.
    local: HashSet<String>,
    /// Names that some struct gave to a field.
    fields: HashSet<String>,
    types: Vec<String>,
    type_names: HashMap<Type, String>,
    helpers: Vec<String>,
    helper_names: HashMap<String, String>,
    error: Option<RenderError>,
}

impl<'a> Module<'a> {
    pub(crate) fn new(prepared: &'a Prepared, target: String, no_names: Names) -> Module<'a> {
        let kernel = &prepared.kernel;
        let mut names = no_names.clone();
        let entry = names.give(&kernel.name);
        let params = kernel.params.iter().map(|p| names.give(&p.name)).collect();
        let shared = kernel.shared.iter().map(|s| names.give(&s.name)).collect();
        let constants = kernel.constants.iter().map(|c| names.give(&c.name)).collect();
        let functions = kernel.functions.iter().map(|f| names.give(&f.name)).collect();
        let asked = prepared.facts.asks(DeviceOp::IsDead);
        let needs = Needs::of_functions(kernel, asked);
        let entry_needs = Needs::of(&kernel.body.block, &needs, asked);
        Module {
            kernel,
            effects: super::effects::of_functions(kernel),
            needs,
            entry_needs,
            catches: prepared.facts.asks(DeviceOp::CatchFault),
            entry,
            params,
            shared,
            constants,
            functions,
            target,
            shared_flat: shared_flat(kernel),
            no_names,
            state: RefCell::new(State {
                global: names,
                ..State::default()
            }),
        }
    }

    /// The names of a struct's fields: the source's, or `f0`, `f1`, … for tuples.
    pub(crate) fn fields(&self, of: &StructType) -> Vec<String> {
        let mut names = self.no_names.clone();
        let give = |field: &Field| match field.name.starts_with(|c: char| c.is_ascii_digit()) {
            true => names.give(&format!("f{}", field.name)),
            false => names.give(&field.name),
        };
        let fields: Vec<String> = of.fields.iter().map(give).collect();
        self.state.borrow_mut().fields.extend(fields.iter().cloned());
        fields
    }

    /// What follows a struct to reach a field.
    pub(crate) fn field(&self, of: &StructType, i: u32) -> String {
        let fields = self.fields(of);
        fields.get(i as usize).map_or(String::new(), |f| format!(".{f}"))
    }

    /// A name for the whole module.
    pub(crate) fn global_name(&self, wanted: &str) -> String {
        let mut state = self.state.borrow_mut();
        loop {
            let name = state.global.give(wanted);
            if !state.local.contains(&name) {
                return name;
            }
        }
    }

    /// Names for one body's own things, clear of the module's.
    pub(crate) fn local_names(&self) -> Names {
        self.state.borrow().global.clone()
    }

    /// A name for one body's own thing.
    pub(crate) fn local_name(&self, names: &mut Names, wanted: &str) -> String {
        let mut state = self.state.borrow_mut();
        loop {
            let name = names.give(wanted);
            // Helpers may have come since `names` began.
            if !state.global.has(&name) {
                state.local.insert(name.clone());
                return name;
            }
        }
    }

    /// The name of a helper function, which `text` writes (given the name) when it is first asked for. What `text`
    /// itself asks for comes before.
    pub(crate) fn helper(&self, key: &str, text: impl FnOnce(&str) -> String) -> String {
        if let Some(name) = self.state.borrow().helper_names.get(key) {
            return name.clone();
        }
        let name = self.global_name(key);
        let text = text(&name);
        let mut state = self.state.borrow_mut();
        state.helper_names.insert(key.to_owned(), name.clone());
        state.helpers.push(text);
        name
    }

    /// Whether a helper function was asked for.
    pub(crate) fn has_helper(&self, key: &str) -> bool {
        self.state.borrow().helper_names.contains_key(key)
    }

    /// The name of a declared type, which `declare` writes (given a name that `wanted` suggests) when it is
    /// first asked for.
    pub(crate) fn declared_type(
        &self,
        ty: &Type,
        wanted: &str,
        declare: impl FnOnce(&str) -> String,
    ) -> String {
        if let Some(name) = self.state.borrow().type_names.get(ty) {
            return name.clone();
        }
        let name = self.global_name(wanted);
        let text = declare(&name);
        let mut state = self.state.borrow_mut();
        state.type_names.insert(ty.clone(), name.clone());
        state.types.push(text);
        name
    }

    /// The declarations of types asked for so far, dependencies first.
    pub(crate) fn types(&self) -> Vec<String> {
        self.state.borrow().types.clone()
    }

    /// The helpers asked for so far, dependencies first.
    pub(crate) fn helpers(&self) -> Vec<String> {
        self.state.borrow().helpers.clone()
    }

    /// Notes that something cannot be written; the first such note is the answer.
    pub(crate) fn fail(&self, error: RenderError) {
        self.state.borrow_mut().error.get_or_insert(error);
    }

    /// Notes that this kernel has something that no target of this kind can write.
    pub(crate) fn unsupported(&self, line: u32, what: impl Into<String>) {
        self.fail(RenderError::Unsupported {
            kernel: self.kernel.name.clone(),
            line,
            what: what.into(),
            target: self.target.clone(),
        });
    }

    /// The whole text, in its parts.
    pub(crate) fn text(&self, parts: &[String]) -> String {
        let text = parts.join("\n");
        debug_assert_eq!(self.marked_by_chance(&text), None, "{text}");
        text
    }

    /// A word that looks like a marked name and has not been given to anything.
    fn marked_by_chance<'t>(&self, text: &'t str) -> Option<&'t str> {
        let state = self.state.borrow();
        let given =
            |word: &str| state.global.has(word) || state.local.contains(word) || state.fields.contains(word);
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.find(|word| self.no_names.are_like(word) && !given(word))
    }

    /// The first error noted.
    pub(crate) fn error(&self) -> Option<RenderError> {
        self.state.borrow().error.clone()
    }
}

/// A type's name with only letters, digits and underscores, for names made from it.
pub(crate) fn type_word(ty: &Type) -> String {
    match ty {
        Type::Scalar(s) => s.name().to_owned(),
        Type::Vector(s, n) => format!("{s}x{n}"),
        Type::Array(element, n) => format!("{}_array_{n}", type_word(element)),
        Type::Struct(s) => s.name.clone(),
    }
}

/// Names of a vector's components.
pub(crate) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

fn shared_flat(kernel: &Kernel) -> Vec<u32> {
    let mut flat: Vec<u32> = kernel.shared.iter().map(|s| array_levels(&s.ty)).collect();
    let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    for body in bodies {
        body.block.walk(&mut |stmt| {
            let place = match &stmt.inst {
                Inst::Let(_, op) => op.place(),
                Inst::Do(Effect::Store(place, ..)) => Some(place),
                _ => None,
            };
            if let Some(Place {
                base: Base::Shared(i),
                path,
            }) = place
                && let Some(n) = flat.get_mut(*i as usize)
            {
                *n = (*n).min(path.len() as u32);
            }
        });
    }
    flat
}
