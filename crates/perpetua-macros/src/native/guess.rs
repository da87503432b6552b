//! Guesses at what a kernel's conditions are in most lanes, by how kernels are written. A wrong one costs time only.

use std::collections::HashSet;

use perpetua_syntax::parse::Conditions;
use syn::ext::IdentExt;
use syn::visit::Visit;

use super::language::{index_function, intrinsic_of, is_integer, name_of, peel, scalar_of};

/// What a condition is in most lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guess {
    /// It holds.
    Holds,
    /// It does not.
    Fails,
    /// It guards an addition to what is computed anyhow: both ways are tried.
    Open,
    /// It guards what some lanes do instead of what most do, and does not hold for most.
    Exception,
    /// It depends on what memory holds, or on other things that differ from lane to lane.
    Data,
}

/// The guesses at a kernel's conditions, by their numbers.
pub(super) fn guesses(sig: &syn::Signature, block: &syn::Block, conditions: &Conditions) -> Vec<Guess> {
    let mut follow = Follow {
        conditions,
        last: match block.stmts.last() {
            Some(syn::Stmt::Expr(syn::Expr::If(branch), _)) => Some(std::ptr::from_ref(branch)),
            _ => None,
        },
        known: HashSet::new(),
        data: HashSet::new(),
        guesses: vec![Guess::Data; conditions.len()],
    };
    for input in &sig.inputs {
        if let syn::FnArg::Typed(typed) = input
            && let syn::Pat::Ident(name) = &*typed.pat
        {
            let is_float = scalar_of(&typed.ty).is_some_and(perpetua_syntax::Scalar::is_float);
            follow.declare(&typed.pat, name.mutability.is_none() && !is_float);
        }
    }
    follow.visit_block(block);
    follow.guesses
}

/// Goes through a function in the order of its text.
struct Follow<'a> {
    conditions: &'a Conditions,
    /// The function's last statement, where it is an `if`.
    last: Option<*const syn::ExprIf>,
    /// Names of what lanes share, or of what follows from where they stand.
    known: HashSet<String>,
    /// Names of what was loaded, or computed of it, and of what changes.
    data: HashSet<String>,
    guesses: Vec<Guess>,
}

impl Follow<'_> {
    /// Notes whether a pattern's names are such as conditions can be guessed of.
    fn declare(&mut self, pattern: &syn::Pat, follows: bool) {
        match pattern {
            syn::Pat::Type(typed) => self.declare(&typed.pat, follows),
            syn::Pat::Ident(ident) if follows && ident.mutability.is_none() && ident.by_ref.is_none() => {
                self.data.remove(&ident.ident.to_string());
                self.known.insert(ident.ident.to_string());
            }
            pattern => {
                struct Names<'f, 'a>(&'f mut Follow<'a>);
                impl Visit<'_> for Names<'_, '_> {
                    fn visit_pat_ident(&mut self, ident: &syn::PatIdent) {
                        self.0.known.remove(&ident.ident.to_string());
                        self.0.data.insert(ident.ident.to_string());
                    }
                }
                Names(self).visit_pat(pattern);
            }
        }
    }

    /// Whether a condition is one of such numbers. A constant decides for all launches, not for most lanes.
    fn decides(&self, expr: &syn::Expr) -> bool {
        use syn::BinOp;
        match peel(expr) {
            syn::Expr::Lit(_) => true,
            syn::Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Not(_)) && self.decides(&unary.expr),
            syn::Expr::Binary(binary) => match binary.op {
                BinOp::And(_) | BinOp::Or(_) => self.decides(&binary.left) && self.decides(&binary.right),
                BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_) => {
                    self.follows(&binary.left) && self.follows(&binary.right)
                }
                _ => false,
            },
            syn::Expr::Path(_) => name_of(expr).is_some_and(|name| self.known.contains(&name.to_string())),
            _ => false,
        }
    }

    /// Whether lanes that stand near one another mostly have the same here, or numbers that follow one another.
    fn follows(&self, expr: &syn::Expr) -> bool {
        let follows = |expr: &syn::Expr| self.follows(expr);
        match peel(expr) {
            syn::Expr::Lit(lit) => !matches!(lit.lit, syn::Lit::Float(_)),
            syn::Expr::Unary(unary) => !matches!(unary.op, syn::UnOp::Deref(_)) && follows(&unary.expr),
            syn::Expr::Binary(binary) => follows(&binary.left) && follows(&binary.right),
            syn::Expr::Path(_) => name_of(expr).is_none_or(|name| !self.data.contains(&name.to_string())),
            syn::Expr::Field(field) => follows(&field.base),
            syn::Expr::Cast(cast) => is_integer(&cast.ty) && follows(&cast.expr),
            syn::Expr::Call(call) => match peel(&call.func) {
                syn::Expr::Path(path) => intrinsic_of(&path.path).and_then(index_function).is_some(),
                _ => false,
            },
            syn::Expr::MethodCall(call) => match call.method.unraw().to_string().as_str() {
                "len" | "x" | "y" | "z" | "idx" => true,
                "wrapping_add" | "wrapping_sub" | "wrapping_mul" | "saturating_sub" | "min" | "max"
                | "clamp" => follows(&call.receiver) && call.args.iter().all(follows),
                _ => false,
            },
            syn::Expr::If(branch) => match (&branch.then_branch.stmts[..], &branch.else_branch) {
                ([syn::Stmt::Expr(then, None)], Some((_, otherwise))) => {
                    self.decides(&branch.cond) && follows(then) && follows(otherwise)
                }
                _ => false,
            },
            syn::Expr::Block(block) => match &block.block.stmts[..] {
                [syn::Stmt::Expr(value, None)] => follows(value),
                _ => false,
            },
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Follow<'_> {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        let Some(init) = &local.init else {
            return self.declare(&local.pat, false);
        };
        self.visit_expr(&init.expr);
        match (&local.pat, peel(&init.expr)) {
            (syn::Pat::Tuple(names), syn::Expr::Tuple(values)) if names.elems.len() == values.elems.len() => {
                let follows = |value| self.follows(value) || self.decides(value);
                let follows: Vec<bool> = values.elems.iter().map(follows).collect();
                names
                    .elems
                    .iter()
                    .zip(follows)
                    .for_each(|(name, follows)| self.declare(name, follows));
            }
            (pattern, value) => {
                let follows = self.follows(value) || self.decides(value);
                self.declare(pattern, follows);
            }
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.declare(&arm.pat, false);
        syn::visit::visit_arm(self, arm);
    }

    fn visit_expr_for_loop(&mut self, looped: &'ast syn::ExprForLoop) {
        self.visit_expr(&looped.expr);
        let follows = match peel(&looped.expr) {
            syn::Expr::Range(range) => {
                let end = |end: &Option<Box<syn::Expr>>| end.as_ref().is_some_and(|end| self.follows(end));
                end(&range.start) && end(&range.end)
            }
            _ => false,
        };
        self.declare(&looped.pat, follows);
        self.visit_block(&looped.body);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        let place = std::ptr::from_ref(branch);
        let number = self.conditions.get(&place).map(|number| *number as usize);
        if self.decides(&branch.cond)
            && let Some(known) = number.and_then(|number| self.guesses.get_mut(number))
        {
            *known = guess(branch, self.last == Some(place));
        }
        syn::visit::visit_expr_if(self, branch);
    }
}

/// What the conditions are, by their numbers: bits of what is guessed at, and of what holds.
pub(super) fn usual(guesses: &[Guess]) -> [(u64, u64); 3] {
    let with = |holds: &dyn Fn(usize, Guess) -> bool| {
        let (mut known, mut truth) = (0, 0);
        for (i, guess) in guesses.iter().enumerate() {
            if *guess != Guess::Data {
                known |= 1 << i;
                truth |= u64::from(holds(i, *guess)) << i;
            }
        }
        (known, truth)
    };
    let last = guesses.iter().rposition(|guess| *guess == Guess::Exception);
    [
        with(&|_, guess| guess == Guess::Holds),
        with(&|_, guess| matches!(guess, Guess::Holds | Guess::Open)),
        // The border, mostly.
        with(&|i, guess| guess == Guess::Holds || Some(i) == last),
    ]
}

/// The guess at the condition of `branch`; `last`: whether nothing follows it in the function.
fn guess(branch: &syn::ExprIf, last: bool) -> Guess {
    match &branch.else_branch {
        // What leaves early is the exception, or a lane without work.
        _ if leaves(&branch.then_branch) && stores(&branch.then_branch) => Guess::Exception,
        _ if leaves(&branch.then_branch) => Guess::Fails,
        Some((_, otherwise)) if matches!(&**otherwise, syn::Expr::Block(block) if leaves(&block.block)) => {
            Guess::Holds
        }
        // Most lanes have work.
        None if last => Guess::Holds,
        None => Guess::Open,
        Some(_) if is_narrow(&branch.cond) => Guess::Fails,
        Some(_) => Guess::Holds,
    }
}

/// Whether a block ends by leaving.
fn leaves(block: &syn::Block) -> bool {
    let Some(syn::Stmt::Expr(last, _)) = block.stmts.last() else {
        return false;
    };
    matches!(
        last,
        syn::Expr::Return(_) | syn::Expr::Continue(_) | syn::Expr::Break(_)
    )
}

/// Whether a block stores to an element of something.
fn stores(block: &syn::Block) -> bool {
    struct Finder(bool);
    impl Visit<'_> for Finder {
        fn visit_expr_assign(&mut self, assign: &syn::ExprAssign) {
            self.0 |= !matches!(peel(&assign.left), syn::Expr::Path(_));
        }
    }
    let mut finder = Finder(false);
    finder.visit_block(block);
    finder.0
}

/// Whether a condition holds for few numbers: an equality, or one of several.
fn is_narrow(condition: &syn::Expr) -> bool {
    match peel(condition) {
        syn::Expr::Binary(binary) => match binary.op {
            syn::BinOp::Eq(_) => true,
            syn::BinOp::Or(_) => is_narrow(&binary.left) || is_narrow(&binary.right),
            syn::BinOp::And(_) => is_narrow(&binary.left) || is_narrow(&binary.right),
            _ => false,
        },
        syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => !is_narrow(&unary.expr),
        _ => false,
    }
}
