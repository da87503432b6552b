//! Finds what a path means within the file.

use std::sync::Arc;

use perpetua_syntax::{
    Block as SyntaxBlock, COMPUTED_LENGTH, Function, FunctionKind, PathRef, PathUsage, Scalar, StructDef,
    Type,
};

use super::constants::{UNMARKED, as_function, is_in_constant, std_constant};
use super::{Defaults, Item, ItemKind, Items, ModulePath, globs};
use crate::front::rust::describe::{ConstValue, EnumDesc, StructDesc, TypeDesc, TypeKey, parts};
use crate::front::rust::infer::{Program, convert_type, ty::Unifier};
use crate::front::rust::resolve::{FunctionDef, Resolved, Resolver};

/// How many definitions may lead to one another: more is a circle.
pub(super) const MAX_STEPS: u32 = 64;

/// Pointer width under which constants are computed; lengths that need more bits fit no device.
pub(super) const WIDTH: u32 = 64;

/// Why a path has no meaning: cause and remedy.
pub(super) type Refusal = (String, String);
pub(super) type Result<T> = std::result::Result<T, Refusal>;

/// What a path leads to.
pub(super) enum Found<'a> {
    Item(Vec<String>, &'a Item),
    /// A member of a type, or a function that a trait gives it: the type's path, the name.
    Member(Vec<String>, String),
    /// A variant of an enum: the enum's path, the variant.
    Variant(Vec<String>, String),
    /// A constant of the standard library.
    Value(ConstValue),
}

impl Items {
    /// A function of the file, with what its names mean.
    pub(super) fn function(
        self: &Arc<Self>,
        tree: Arc<Function>,
        module: ModulePath,
        owner: Option<Vec<String>>,
    ) -> FunctionDef {
        self.function_at(tree, module, owner, 0)
    }

    fn function_at(
        self: &Arc<Self>,
        tree: Arc<Function>,
        module: ModulePath,
        owner: Option<Vec<String>>,
        steps: u32,
    ) -> FunctionDef {
        let items = self.clone();
        let names = tree.clone();
        FunctionDef::from_source(tree, move |r| {
            items.resolve(&names.paths, &module, owner.as_ref(), steps, r);
        })
    }

    fn resolve(
        self: &Arc<Self>,
        paths: &[PathRef],
        module: &ModulePath,
        owner: Option<&Vec<String>>,
        steps: u32,
        r: &mut Resolver,
    ) {
        if let Some(owner) = owner
            && let Ok(ty) = self.type_at(owner, steps + 1)
        {
            r.set_self_type(ty);
        }
        for (i, path) in paths.iter().enumerate() {
            let meaning = match self.meaning(path, module, owner, steps + 1) {
                Ok(meaning) => meaning,
                Err((cause, remedy)) => Resolved::Refused { cause, remedy },
            };
            r.set(i as u32, meaning);
        }
        // Constants have no methods to call.
        if steps == 0 {
            r.set_members(Arc::new(self.members()));
        }
    }

    /// The trait that a block in `module` names, with the module in which it stands.
    pub(super) fn trait_at(
        &self,
        path: Option<&Vec<String>>,
        module: &ModulePath,
    ) -> Option<(&ModulePath, &Defaults)> {
        match self.find(path?, module, None, false, 1) {
            Ok(Some(Found::Item(_, item))) => match &item.kind {
                ItemKind::Trait(defaults) => Some((&item.module, defaults)),
                _ => None,
            },
            _ => None,
        }
    }

    /// What an item of a block of `owner` means.
    pub(super) fn item_meaning(
        self: &Arc<Self>,
        name: &str,
        item: &Item,
        owner: &Vec<String>,
        steps: u32,
    ) -> Result<Resolved> {
        match &item.kind {
            ItemKind::Function(tree) => Ok(Resolved::Device(self.function(
                tree.clone(),
                item.module.clone(),
                Some(owner.clone()),
            ))),
            ItemKind::Const(def) => self
                .value(def, &item.module, Some(owner), steps)
                .map(Resolved::Const),
            ItemKind::Alias(def) => self
                .written_type(&def.ty, &def.paths, &item.module, Some(owner), steps)
                .map(Resolved::Type),
            ItemKind::Unusable(why) => Err((format!("`{name}` cannot be used in a kernel"), why.clone())),
            _ => Err((format!("`{name}` is no member of a type"), String::new())),
        }
    }

    pub(super) fn meaning(
        self: &Arc<Self>,
        path: &PathRef,
        module: &ModulePath,
        owner: Option<&Vec<String>>,
        steps: u32,
    ) -> Result<Resolved> {
        let segments: Vec<String> = path.segments.iter().map(|s| s.name.clone()).collect();
        let text = path.text();
        let found = self.find(&segments, module, owner, path.leading_colon, steps)?;
        let Some(found) = found else {
            return Err(self.unknown(path, module));
        };
        if let Found::Variant(at, _) | Found::Member(at, _) = &found
            && let Ok(generic @ Resolved::GenericStruct(_)) = self.type_named(at, steps)
        {
            // What the type's arguments are follows from elsewhere.
            return Ok(generic);
        }
        match found {
            Found::Value(value) => Ok(Resolved::Const(value)),
            Found::Variant(owner, name) => match self.type_at(&owner, steps)? {
                TypeDesc::Enum(desc) => match desc.variants.iter().find(|(n, _)| *n == name) {
                    Some((_, value)) => Ok(Resolved::Const(ConstValue::Enum(desc.clone(), *value))),
                    None => Err((format!("`{}` has no variant `{name}`", desc.name), String::new())),
                },
                TypeDesc::Struct(desc) => match desc.variants.iter().position(|variant| variant.name == name)
                {
                    Some(number) if desc.variants[number].fields.is_empty() => {
                        let ty = TypeDesc::Struct(desc);
                        Ok(Resolved::Const(ConstValue::of_variant(&ty, number, Vec::new())))
                    }
                    _ if path.usage == PathUsage::StructLiteral => Err((
                        format!("`{text}` is a variant with data, which kernels know by its enum"),
                        format!("write `{}::{name}`", desc.name),
                    )),
                    _ => Err((
                        format!("`{text}` is no value"),
                        format!("give the variant what it holds: `{text}(…)`"),
                    )),
                },
                other => Err((format!("`{other}` is not an enum"), String::new())),
            },
            // The lowering finds functions by their type.
            Found::Member(at, name) if path.usage == PathUsage::Call => {
                let known = self.blocks.iter().filter(|block| block.owner == at);
                let unusable =
                    known
                        .flat_map(|block| &block.members)
                        .find_map(|(n, item)| match &item.kind {
                            ItemKind::Unusable(why) if *n == name => Some(why.clone()),
                            _ => None,
                        });
                match unusable {
                    Some(why) => Err((format!("`{text}` cannot be used in a kernel"), why)),
                    None => self.type_named(&at, steps),
                }
            }
            Found::Member(at, name) => {
                let known = self.blocks.iter().filter(|block| block.owner == at);
                match known.flat_map(|block| &block.members).find(|(n, _)| *n == name) {
                    Some((_, item)) if matches!(item.kind, ItemKind::Const(_)) => {
                        let path = at.iter().cloned().chain([name]).collect();
                        self.once(path, steps, || self.item_meaning(&text, item, &at, steps))
                    }
                    Some((_, item)) => self.item_meaning(&text, item, &at, steps),
                    None => Err((format!("`{text}` is not known"), String::new())),
                }
            }
            Found::Item(at, item) => match &item.kind {
                ItemKind::Function(tree) => Ok(Resolved::Device(self.function(
                    tree.clone(),
                    item.module.clone(),
                    None,
                ))),
                ItemKind::ConstFunction(tree) if is_in_constant() => Ok(Resolved::Device(self.function(
                    tree.clone(),
                    item.module.clone(),
                    None,
                ))),
                ItemKind::ConstFunction(_) => Err((
                    format!("`{text}` cannot be used in a kernel"),
                    UNMARKED.to_owned(),
                )),
                ItemKind::Const(def) => {
                    let computed = |refused| match self.calls(def, &item.module, steps) {
                        true => Ok(Resolved::Computed(self.function(
                            Arc::new(as_function(def)),
                            item.module.clone(),
                            None,
                        ))),
                        false => Err(refused),
                    };
                    let value = || self.value(def, &item.module, None, steps).map(Resolved::Const);
                    self.once(at, steps, || value().or_else(computed))
                }
                ItemKind::Unusable(why) => Err((format!("`{text}` cannot be used in a kernel"), why.clone())),
                _ => Ok(match self.type_named(&at, steps)? {
                    // A struct without fields is a value, too.
                    Resolved::Type(TypeDesc::Struct(desc))
                        if path.usage == PathUsage::Value && desc.fields.is_empty() =>
                    {
                        Resolved::Const(ConstValue::Struct(desc, Vec::new()))
                    }
                    meaning => meaning,
                }),
            },
        }
    }

    /// How many names of a module's path are those of its crate.
    pub(super) fn root_of(&self, path: &[String]) -> usize {
        usize::from(path.first().is_some_and(|first| self.crates.contains(first)))
    }

    /// What the path means where it stands in `module`; `None` where it leads out of the file.
    pub(super) fn find(
        &self,
        segments: &[String],
        module: &ModulePath,
        owner: Option<&Vec<String>>,
        absolute: bool,
        steps: u32,
    ) -> Result<Option<Found<'_>>> {
        if steps > MAX_STEPS {
            return Err((
                format!(
                    "`{}` leads in a circle, or more than {MAX_STEPS} definitions lead to one another",
                    segments.join("::")
                ),
                "define one of them by its value".into(),
            ));
        }
        let mut segments = segments;
        let mut at = module.clone();
        let mut relative = !absolute;
        match segments {
            [first, rest @ ..] if first == "Self" => {
                let Some(owner) = owner else {
                    return Ok(None);
                };
                return self.below(owner, rest, steps);
            }
            [first, rest @ ..] if first == "crate" => {
                at.truncate(self.root_of(&at));
                segments = rest;
                relative = false;
            }
            [first, rest @ ..] if first == "self" => {
                segments = rest;
                relative = false;
            }
            _ => {}
        }
        while let [first, rest @ ..] = segments
            && first == "super"
        {
            if at.pop().is_none() {
                return Ok(None);
            }
            segments = rest;
            relative = false;
        }
        if !absolute {
            match self.below(&at, segments, steps)? {
                None if relative => {}
                found => return Ok(found),
            }
        }
        // A crate: one that the file was given or names, or the standard library.
        if segments.first().is_some_and(|first| {
            matches!(first.as_str(), "perpetua" | "std" | "core") || self.crates.contains(first)
        }) && let Some(found) = self.below(&[], segments, steps)?
        {
            return Ok(Some(found));
        }
        if let [name] = segments
            && name.starts_with(COMPUTED_LENGTH)
        {
            return Err((
                "the length of an array is computed by a function, which only rustc does".to_owned(),
                "write the number, or compute it of constants".to_owned(),
            ));
        }
        Ok(std_constant(segments).map(Found::Value))
    }

    /// What the path means that starts at the module or type `at`.
    fn below(&self, at: &[String], segments: &[String], steps: u32) -> Result<Option<Found<'_>>> {
        let Some((first, rest)) = segments.split_first() else {
            return Ok(self.items.get(at).map(|item| Found::Item(at.to_vec(), item)));
        };
        if let Some(owner) = self.items.get(at) {
            if !rest.is_empty() {
                return Ok(None);
            }
            return Ok(match &owner.kind {
                ItemKind::Enum(def) if def.variants.iter().any(|(name, _)| name == first) => {
                    Some(Found::Variant(at.to_vec(), first.clone()))
                }
                ItemKind::Struct(def) if def.variants.iter().any(|(name, _)| name == first) => {
                    Some(Found::Variant(at.to_vec(), first.clone()))
                }
                ItemKind::Described(TypeDesc::Enum(def))
                    if def.variants.iter().any(|(name, _)| name == first) =>
                {
                    Some(Found::Variant(at.to_vec(), first.clone()))
                }
                ItemKind::Struct(_) | ItemKind::Enum(_) | ItemKind::Described(_) | ItemKind::Alias(_) => {
                    Some(Found::Member(at.to_vec(), first.clone()))
                }
                _ => None,
            });
        }
        let mut next = at.to_vec();
        next.push(first.clone());
        if self.items.contains_key(&next) || self.modules.contains(&next) {
            return self.below(&next, rest, steps + 1);
        }
        if let Some(written) = self.uses.get(&next) {
            let mut path = written.clone();
            path.extend(rest.iter().cloned());
            // A `use` of its own name would find itself.
            if path.first() == Some(first) && path.len() == segments.len() && written.len() == 1 {
                return Ok(None);
            }
            return self.find(&path, &at.to_vec(), None, false, steps + 1);
        }
        for glob in globs::that_may_lead(self.globs.get(at), segments) {
            let mut path = glob.clone();
            path.extend(segments.iter().cloned());
            if path.first() == Some(first) && glob.is_empty() {
                continue;
            }
            if let Some(found) = self.find(&path, &at.to_vec(), None, false, steps + 1)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    pub(super) fn key(&self, path: &[String]) -> TypeKey {
        TypeKey::Source(Arc::from(format!("{}::{}", self.file, path.join("::"))))
    }

    /// The type of this full path.
    pub(super) fn type_at(self: &Arc<Self>, path: &[String], steps: u32) -> Result<TypeDesc> {
        if steps > MAX_STEPS {
            return Err((format!("`{}` holds itself", path.join("::")), String::new()));
        }
        let Some(item) = self.items.get(path) else {
            return match path {
                [name] if Scalar::from_name(name).is_some() => {
                    Ok(TypeDesc::Scalar(Scalar::from_name(name).unwrap_or(Scalar::Bool)))
                }
                _ => Err((format!("`{}` is not a type", path.join("::")), String::new())),
            };
        };
        let key = self.key(path);
        match &item.kind {
            ItemKind::Struct(def) => self.struct_type(def, key, &item.module, steps),
            ItemKind::Enum(def) => Ok(TypeDesc::Enum(Arc::new(EnumDesc {
                key,
                name: def.name.clone(),
                repr: def.repr,
                variants: def.variants.clone(),
                in_order: None,
                default: None,
            }))),
            ItemKind::Described(ty) => Ok(ty.clone()),
            ItemKind::Alias(def) => self.written_type(&def.ty, &def.paths, &item.module, None, steps),
            ItemKind::Unusable(why) => Err((
                format!("`{}` cannot be used in a kernel", path.join("::")),
                why.clone(),
            )),
            _ => Err((format!("`{}` is not a type", path.join("::")), String::new())),
        }
    }

    fn struct_type(
        self: &Arc<Self>,
        def: &StructDef,
        key: TypeKey,
        module: &ModulePath,
        steps: u32,
    ) -> Result<TypeDesc> {
        let mut fields = Vec::new();
        for field in &def.fields {
            let ty = self.written_type(&field.ty, &def.paths, module, None, steps)?;
            fields.push((field.name.clone(), ty));
        }
        if !def.variants.is_empty() {
            let parts = parts(&key, &def.name, def.by_variant(fields), |ty| ty);
            let desc = StructDesc::of_values(key, def.name.clone(), parts);
            return Ok(TypeDesc::Struct(Arc::new(desc)));
        }
        if !def.in_memory() {
            let desc = StructDesc::of_fields(key, def.name.clone(), def.tuple, fields);
            return Ok(TypeDesc::Struct(Arc::new(desc)));
        }
        match StructDesc::laid_out(key, def.name.clone(), def.tuple, fields) {
            Ok(desc) => Ok(TypeDesc::Struct(Arc::new(desc))),
            Err(field) => Err((
                format!("the field `{field}` of `{}` has no layout", def.name),
                "use scalars, arrays and structs".into(),
            )),
        }
    }

    /// A stand-in for the function in which a type or a constant would stand.
    pub(super) fn place(
        self: &Arc<Self>,
        paths: &[PathRef],
        module: &ModulePath,
        owner: Option<&Vec<String>>,
        steps: u32,
    ) -> FunctionDef {
        let tree = Function {
            name: "const".into(),
            kind: FunctionKind::Device,
            file: self.file.clone(),
            line: 0,
            own: None,
            generics: Vec::new(),
            params: Vec::new(),
            ret: None,
            body: SyntaxBlock {
                stmts: Vec::new(),
                value: None,
                end_line: 0,
            },
            paths: paths.to_vec(),
        };
        self.function_at(Arc::new(tree), module.clone(), owner.cloned(), steps)
    }

    pub(super) fn written_type(
        self: &Arc<Self>,
        ty: &Type,
        paths: &[PathRef],
        module: &ModulePath,
        owner: Option<&Vec<String>>,
        steps: u32,
    ) -> Result<TypeDesc> {
        let program = Program::new(WIDTH);
        let refused = |e: crate::front::rust::LowerError| (e.cause, e.remedy);
        let loaded = program
            .load(&self.place(paths, module, owner, steps))
            .map_err(refused)?;
        let mut types = Unifier::default();
        let ty = convert_type(&program, &loaded, &[], &mut types, ty, 0).map_err(refused)?;
        ty.to_desc().ok_or_else(|| {
            (
                format!("`{}` is not kept in memory", types.show(&ty)),
                String::new(),
            )
        })
    }
}
