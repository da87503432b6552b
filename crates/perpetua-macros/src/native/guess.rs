//! A guess at what a condition is in most lanes, by how kernels are written. A wrong one costs time only.

use std::collections::HashSet;

use super::language::peel;

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
    /// It depends on what memory holds, or on what the probe does not follow.
    Data,
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
pub(super) fn guess(branch: &syn::ExprIf, last: bool) -> Guess {
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
    impl syn::visit::Visit<'_> for Finder {
        fn visit_expr_assign(&mut self, assign: &syn::ExprAssign) {
            self.0 |= !matches!(peel(&assign.left), syn::Expr::Path(_));
        }
    }
    let mut finder = Finder(false);
    syn::visit::Visit::visit_block(&mut finder, block);
    finder.0
}

/// Whether an expression mentions one of these names.
pub(super) fn mentions(expr: &syn::Expr, names: &HashSet<String>) -> bool {
    struct Finder<'a>(&'a HashSet<String>, bool);
    impl syn::visit::Visit<'_> for Finder<'_> {
        fn visit_ident(&mut self, ident: &syn::Ident) {
            self.1 |= self.0.contains(&ident.to_string());
        }
    }
    let mut finder = Finder(names, false);
    syn::visit::Visit::visit_expr(&mut finder, expr);
    finder.1
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
