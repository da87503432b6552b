//! Prints kernels: `Display` for [`Kernel`]. Declarations here, code in `print_code`.

use std::collections::HashSet;
use std::fmt::{self, Write};

use super::print_code::{self, TypeText, scalar, string};
use super::words;
use crate::ir::*;

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut structs = Structs::default();
        structs.kernel(self);
        for s in structs.order {
            structure(f, s)?;
        }
        for table in &self.constants {
            write!(
                f,
                "const {}: [{}; {}] = [",
                table.name,
                table.element,
                table.data.len()
            )?;
            for (i, bits) in table.data.iter().enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                scalar(f, table.element, *bits)?;
            }
            f.write_str("]\n")?;
        }
        for var in &self.shared {
            let (open, close) = if var.dynamic { ("[", "]") } else { ("", "") };
            writeln!(f, "shared {}: {open}{}{close}", var.name, TypeText(&var.ty))?;
        }
        for function in &self.functions {
            write!(f, "fn {}(", function.name)?;
            for (i, (name, ty)) in function.params.iter().enumerate() {
                let separator = if i > 0 { ", " } else { "" };
                write!(f, "{separator}{name}: {}", TypeText(ty))?;
            }
            f.write_str(")")?;
            if let Some(ty) = &function.result {
                write!(f, " -> {}", TypeText(ty))?;
            }
            f.write_str(" {\n")?;
            print_code::body(self, &function.body, function.params.len(), f)?;
            f.write_str("}\n")?;
        }
        header(f, self)?;
        f.write_str(" {\n")?;
        print_code::body(self, &self.body, 0, f)?;
        f.write_str("}\n")
    }
}

fn header(f: &mut dyn Write, kernel: &Kernel) -> fmt::Result {
    write!(f, "kernel {}(", kernel.name)?;
    for (i, param) in kernel.params.iter().enumerate() {
        let separator = if i > 0 { ", " } else { "" };
        write!(f, "{separator}{}: ", param.name)?;
        match &param.kind {
            ParamKind::Value(ty) => write!(f, "{}", TypeText(ty))?,
            ParamKind::Buffer { element, access } => {
                write!(f, "buffer<{}, {}>", TypeText(element), words::access(*access))?;
            }
        }
    }
    f.write_str(")")?;
    if !kernel.source.is_empty() {
        f.write_str(" source ")?;
        string(f, &kernel.source)?;
    }
    if let Some([x, y, z]) = kernel.block_size {
        write!(f, " block_size({x}, {y}, {z})")?;
    }
    if kernel.checks != Checks::On {
        write!(f, " checks({})", words::checks(kernel.checks))?;
    }
    if kernel.contract {
        f.write_str(" contract")?;
    }
    if let Some(stages) = &kernel.stages {
        write!(f, " stages({}, {}", stages.count, stages.element)?;
        for (number, factor) in stages.factors().enumerate() {
            let way = if factor.across { "across" } else { "along" };
            let twins = if number == 2 && stages.twins.is_some() {
                ", twins"
            } else {
                ""
            };
            write!(f, "{twins}, {way}({}", factor.extent)?;
            for i in [factor.buffer].into_iter().chain(factor.described()) {
                let param = kernel.params.get(i as usize);
                write!(f, ", {}", param.map_or("?", |param| &param.name))?;
            }
            f.write_str(")")?;
        }
        if stages.depth != stages.element.depth() {
            write!(f, ", {} deep", stages.depth)?;
        }
        f.write_str(if stages.pairs { ", pairs)" } else { ")" })?;
    }
    if kernel.pointer_width != 64 {
        write!(f, " pointer_width({})", kernel.pointer_width)?;
    }
    Ok(())
}

fn structure(f: &mut dyn Write, s: &StructType) -> fmt::Result {
    write!(f, "struct {}", s.name)?;
    let natural = s.fields.iter().map(|field| field.ty.align()).max();
    if natural.unwrap_or(1) != s.align {
        write!(f, " align({})", s.align)?;
    }
    f.write_str(" { ")?;
    for (i, field) in s.fields.iter().enumerate() {
        let separator = if i > 0 { ", " } else { "" };
        write!(f, "{separator}{}: {}", field.name, TypeText(&field.ty))?;
    }
    f.write_str(" }\n")
}

/// The structs of a kernel, each after those that it contains, one a name.
#[derive(Default)]
struct Structs<'a> {
    order: Vec<&'a StructType>,
    named: HashSet<&'a str>,
}

impl<'a> Structs<'a> {
    fn kernel(&mut self, kernel: &'a Kernel) {
        for param in &kernel.params {
            match &param.kind {
                ParamKind::Buffer { element: ty, .. } | ParamKind::Value(ty) => self.add(ty),
            }
        }
        kernel.shared.iter().for_each(|var| self.add(&var.ty));
        for function in &kernel.functions {
            function.params.iter().for_each(|(_, ty)| self.add(ty));
            function.result.iter().for_each(|ty| self.add(ty));
            self.body(&function.body);
        }
        self.body(&kernel.body);
    }

    fn body(&mut self, body: &'a Body) {
        body.locals.iter().for_each(|local| self.add(&local.ty));
        body.values.iter().for_each(|ty| self.add(ty));
        body.block.walk(&mut |stmt| {
            if let Inst::Let(_, Op::Zero(ty) | Op::Compose(ty, _)) = &stmt.inst {
                self.add(ty);
            }
        });
    }

    fn add(&mut self, ty: &'a Type) {
        match ty {
            Type::Scalar(_) | Type::Vector(..) => {}
            Type::Array(element, _) => self.add(element),
            Type::Struct(s) => {
                let unit = s.name == "tuple" && s.fields.is_empty();
                if !unit && self.named.insert(&s.name) {
                    s.fields.iter().for_each(|field| self.add(&field.ty));
                    self.order.push(s);
                }
            }
        }
    }
}
