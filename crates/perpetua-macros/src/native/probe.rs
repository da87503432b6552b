//! The probe's body: the function's control flow with nothing left but accesses to buffers, and the integers and
//! conditions (see [`affine`](super::affine)) on which these depend.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::Token;
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;

use super::affine::Known;
use super::call::near;
use super::guess::{Guess, guess, mentions};
use super::lane::{Guards, internal};
use super::language::{is_integer, name_of, peel};
use super::scope::{Name, Scope};

/// The number of the condition that a stencil's cell is computed.
pub(super) const COMPUTED: u32 = 63;

/// Conditions from this number on are not followed into the fast body.
const MOST_GUARDS: u32 = COMPUTED;

/// Writes the body of a probe.
pub(super) struct Follow<'a> {
    pub(super) native: &'a TokenStream,
    pub(super) scope: Scope,
    /// The probe, a `&mut Probe`.
    pub(super) probe: syn::Ident,
    /// The stencil's grid.
    pub(super) grid: syn::Ident,
    /// Whether blocks are not told apart.
    pub(super) merged: bool,
    /// Uniform parameters of type `bool`.
    pub(super) flags: HashSet<String>,
    /// Conditions that the fast body may take for known.
    pub(super) guards: Guards,
    /// What they mostly are, by their numbers.
    pub(super) guesses: Vec<Guess>,
    /// Names of what was loaded, or computed of it.
    data: HashSet<String>,
    /// The function's last statement, where it is an `if`.
    last: Option<*const syn::ExprIf>,
    /// Whether an index was met that is not followed, so that nothing can be proven.
    pub(super) lost: bool,
    /// Whether what is visited is the function's own tree, whose addresses last.
    lasting: bool,
}

impl<'a> Follow<'a> {
    pub(super) fn new(native: &'a TokenStream, merged: bool) -> Follow<'a> {
        Follow {
            native,
            scope: Scope::default(),
            probe: internal("p"),
            grid: internal("grid"),
            merged,
            flags: HashSet::new(),
            guards: Guards::new(),
            guesses: Vec::new(),
            data: HashSet::new(),
            last: None,
            lost: false,
            lasting: true,
        }
    }

    fn lose(&mut self) -> TokenStream {
        self.lost = true;
        TokenStream::new()
    }

    /// A function's statements.
    pub(super) fn body(&mut self, block: &syn::Block) -> TokenStream {
        self.last = match block.stmts.last() {
            Some(syn::Stmt::Expr(syn::Expr::If(branch), _)) => Some(std::ptr::from_ref(branch)),
            _ => None,
        };
        self.block(block)
    }

    /// A block's statements, without braces.
    pub(super) fn block(&mut self, block: &syn::Block) -> TokenStream {
        let mark = self.scope.mark();
        let stmts: Vec<TokenStream> = block.stmts.iter().map(|stmt| self.stmt(stmt)).collect();
        self.scope.reset(mark);
        quote!(#(#stmts)*)
    }

    fn stmt(&mut self, stmt: &syn::Stmt) -> TokenStream {
        match stmt {
            syn::Stmt::Local(local) => match &local.init {
                Some(init) => self.binding(&local.pat, &init.expr),
                None => {
                    self.scope.declare_pattern(&local.pat, Name::Value);
                    TokenStream::new()
                }
            },
            syn::Stmt::Expr(expr, _) => self.visit(expr),
            syn::Stmt::Macro(stmt) => self.macro_call(&stmt.mac),
            syn::Stmt::Item(_) => self.lose(),
        }
    }

    /// `let pattern = value;`
    fn binding(&mut self, pattern: &syn::Pat, value: &syn::Expr) -> TokenStream {
        if let syn::Pat::Ident(ident) = pattern
            && (has_access(value) || mentions(value, &self.data))
        {
            self.data.insert(ident.ident.to_string());
        }
        match (pattern, peel(value)) {
            (syn::Pat::Tuple(pattern), syn::Expr::Tuple(value))
                if pattern.elems.len() == value.elems.len() =>
            {
                // All values before all names.
                let mut known = Vec::new();
                for value in &value.elems {
                    known.push(self.value(value));
                }
                let temporaries: Vec<syn::Ident> =
                    (0..known.len()).map(|i| internal(&format!("part{i}"))).collect();
                let first = known.iter().zip(&temporaries).map(|(known, name)| match known {
                    Ok(Known { tokens, .. }) => quote!(let #name = #tokens;),
                    Err(visit) => visit.clone(),
                });
                let first: Vec<TokenStream> = first.collect();
                let second: Vec<TokenStream> = known
                    .into_iter()
                    .zip(&temporaries)
                    .zip(&pattern.elems)
                    .map(|((known, name), pattern)| match known {
                        Ok(known) => {
                            let known = Known {
                                tokens: quote!(#name),
                                ..known
                            };
                            self.declare(pattern, known)
                        }
                        Err(_) => {
                            self.scope.declare_pattern(pattern, Name::Value);
                            TokenStream::new()
                        }
                    })
                    .collect();
                quote!(#(#first)* #(#second)*)
            }
            (syn::Pat::Ident(_), _) if let Some(tokens) = self.loaded(value) => {
                let known = Known {
                    tokens,
                    soft: false,
                    loose: false,
                };
                self.declare(pattern, known)
            }
            _ => match self.value(value) {
                Ok(known) => self.declare(pattern, known),
                Err(visit) => {
                    self.scope.declare_pattern(pattern, Name::Value);
                    visit
                }
            },
        }
    }

    /// The integer that a value is, or the visit of its accesses.
    fn value(&mut self, value: &syn::Expr) -> Result<Known, TokenStream> {
        match self.integer(value) {
            Some(known) => Ok(known),
            None => Err(self.visit(value)),
        }
    }

    /// Binds an integer to a name, where the name keeps it.
    fn declare(&mut self, pattern: &syn::Pat, known: Known) -> TokenStream {
        let (pattern, ty) = match pattern {
            syn::Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pattern => (pattern, None),
        };
        let Known {
            mut tokens,
            mut soft,
            mut loose,
        } = known;
        match ty {
            Some(ty) if is_integer(ty) => {
                let native = self.native;
                tokens = quote!(#native::affine::typed::<#ty>(#tokens));
                (soft, loose) = (false, false);
            }
            // An alias says a type that is not seen here. Conditions within are followed all the same.
            Some(_) if soft => {
                self.scope.declare_pattern(pattern, Name::Value);
                return quote!(let _ = #tokens;);
            }
            _ => {}
        }
        match pattern {
            syn::Pat::Ident(ident) if ident.mutability.is_none() && ident.by_ref.is_none() => {
                let name = &ident.ident;
                self.scope.declare(name, Name::Known { soft, loose });
                quote!(let #name = #tokens;)
            }
            _ => {
                self.scope.declare_pattern(pattern, Name::Value);
                // A condition within may still be followed.
                quote!(let _ = #tokens;)
            }
        }
    }

    /// The accesses that an expression makes.
    pub(super) fn visit(&mut self, expr: &syn::Expr) -> TokenStream {
        match peel(expr) {
            syn::Expr::Lit(_) | syn::Expr::Path(_) | syn::Expr::Continue(_) => TokenStream::new(),
            syn::Expr::Unary(unary) => self.visit(&unary.expr),
            syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_) | syn::BinOp::Or(_)) => {
                let truth = self.condition(expr);
                quote!(let _ = #truth;)
            }
            syn::Expr::Binary(binary) if is_assignment(&binary.op) => {
                let (value, place) = (self.visit(&binary.right), self.stored(&binary.left));
                let stop = self.may_stop();
                quote!(#value #place #stop)
            }
            syn::Expr::Binary(binary) => {
                let (left, right) = (self.visit(&binary.left), self.visit(&binary.right));
                let stop =
                    matches!(binary.op, syn::BinOp::Div(_) | syn::BinOp::Rem(_)).then(|| self.may_stop());
                quote!(#left #right #stop)
            }
            syn::Expr::Assign(assign) => {
                let (value, place) = (self.visit(&assign.right), self.stored(&assign.left));
                quote!(#value #place)
            }
            syn::Expr::Cast(cast) => self.visit(&cast.expr),
            syn::Expr::Field(field) => self.visit(&field.base),
            syn::Expr::Index(index) => self.element(index, false),
            syn::Expr::Reference(reference) => self.visit(&reference.expr),
            syn::Expr::Tuple(tuple) => self.visits(&tuple.elems),
            syn::Expr::Array(array) => self.visits(&array.elems),
            syn::Expr::Repeat(repeat) => self.visit(&repeat.expr),
            syn::Expr::Struct(literal) => {
                let fields = literal.fields.iter().map(|field| &field.expr);
                let visits: Vec<TokenStream> = fields
                    .chain(literal.rest.as_deref())
                    .map(|value| self.visit(value))
                    .collect();
                quote!(#(#visits)*)
            }
            syn::Expr::Call(call) => {
                let (args, stop) = (self.visits(&call.args), self.may_stop());
                quote!(#args #stop)
            }
            syn::Expr::MethodCall(call) => self.method_call(call),
            syn::Expr::Macro(mac) => self.macro_call(&mac.mac),
            syn::Expr::If(branch) => self.branch(branch),
            syn::Expr::Match(choice) => self.choice(choice),
            syn::Expr::Loop(expr) => self.repeated(&TokenStream::new(), &expr.body),
            syn::Expr::While(expr) => {
                let condition = self.condition(&expr.cond);
                self.repeated(&quote!(let _ = #condition;), &expr.body)
            }
            syn::Expr::ForLoop(expr) => self.counted(expr),
            syn::Expr::Block(block) => {
                let stmts = self.block(&block.block);
                // A `break` out of a labelled block skips what follows, for lanes that are not told apart.
                match block.label {
                    Some(_) => self.in_doubt(&stmts),
                    None => quote!({ #stmts }),
                }
            }
            syn::Expr::Break(expr) => expr
                .expr
                .as_ref()
                .map_or_else(TokenStream::new, |e| self.visit(e)),
            syn::Expr::Return(expr) => {
                let value = expr.expr.as_ref().map(|value| self.visit(value));
                let p = &self.probe;
                quote!(#value #p.returns()?;)
            }
            _ => self.lose(),
        }
    }

    fn visits<'e>(&mut self, exprs: impl IntoIterator<Item = &'e syn::Expr>) -> TokenStream {
        let visits: Vec<TokenStream> = exprs.into_iter().map(|expr| self.visit(expr)).collect();
        quote!(#(#visits)*)
    }

    fn in_doubt(&self, stmts: &TokenStream) -> TokenStream {
        let (p, native) = (&self.probe, self.native);
        quote! {{
            #p.enter(#native::Truth::Perhaps);
            #stmts
            #p.leave(#native::Truth::Perhaps);
        }}
    }

    /// A load from, or a store to, `base[index]`.
    fn element(&mut self, index: &syn::ExprIndex, stores: bool) -> TokenStream {
        let buffer = name_of(&index.expr)
            .filter(|name| matches!(self.scope.find(name), Some(Name::Buffer { .. })))
            .cloned();
        let Some(buffer) = buffer else {
            let base = if stores {
                self.stored(&index.expr)
            } else {
                self.visit(&index.expr)
            };
            let (index, stop) = (self.visit(&index.index), self.may_stop());
            return quote!(#index #base #stop);
        };
        let tokens = match self.loaded(&index.index) {
            Some(tokens) => tokens,
            None => match self.integer(&index.index) {
                Some(Known { tokens, .. }) => tokens,
                None => return self.lose(),
            },
        };
        let (p, at) = (&self.probe, internal("at"));
        if stores {
            quote!({ let #at = #tokens; #p.store(&#buffer, #at)?; })
        } else {
            quote!({ let #at = #tokens; #p.load(&#buffer, #at)?; })
        }
    }

    /// `buffer[index] as usize` as a whole value: any number of the buffer's type. Not as a part of another value: the access
    /// takes the probe for itself.
    fn loaded(&mut self, expr: &syn::Expr) -> Option<TokenStream> {
        let syn::Expr::Cast(cast) = peel(expr) else {
            return None;
        };
        let syn::Expr::Index(index) = peel(&cast.expr) else {
            return None;
        };
        let buffer = name_of(&index.expr)
            .filter(|name| matches!(self.scope.find(name), Some(Name::Buffer { .. })))
            .cloned()?;
        if !is_integer(&cast.ty) {
            return None;
        }
        let (access, p, at, ty) = (
            self.element(index, false),
            &self.probe,
            internal("loaded"),
            &cast.ty,
        );
        Some(quote!({ #access let #at = #p.loaded(&#buffer); #p.cast::<_, #ty>(#at) }))
    }

    /// A place that is stored to.
    fn stored(&mut self, place: &syn::Expr) -> TokenStream {
        match peel(place) {
            syn::Expr::Index(index) => self.element(index, true),
            syn::Expr::Field(field) => self.stored(&field.base),
            other => self.visit(other),
        }
    }

    fn method_call(&mut self, call: &syn::ExprMethodCall) -> TokenStream {
        let receiver = name_of(&call.receiver).and_then(|name| self.scope.find(name));
        if receiver == Some(Name::Position) {
            return self.neighbour(call);
        }
        let (receiver, args) = (self.visit(&call.receiver), self.visits(&call.args));
        let stop = self.may_stop();
        quote!(#receiver #args #stop)
    }

    fn may_stop(&self) -> TokenStream {
        let p = &self.probe;
        quote!(#p.may_stop();)
    }

    fn neighbour(&mut self, call: &syn::ExprMethodCall) -> TokenStream {
        let name = call.method.unraw().to_string();
        if matches!(name.as_str(), "x" | "y" | "z" | "idx") {
            return TokenStream::new();
        }
        let Some(buffer) = call.args.first().and_then(name_of).cloned() else {
            return self.lose();
        };
        let p = self.probe.clone();
        let offsets: Option<Vec<TokenStream>> = match near(&name) {
            Some(offset) => Some(offset.iter().map(|o| quote!(#p.uniform(#o))).collect()),
            None => call
                .args
                .iter()
                .skip(1)
                .map(|o| self.integer(o).map(|known| known.tokens))
                .collect(),
        };
        let Some(mut offsets) = offsets else {
            return self.lose();
        };
        offsets.resize(3, quote!(#p.uniform(0i32)));
        let (grid, at) = (&self.grid, internal("at"));
        quote!({ let #at = [#(#offsets),*]; #p.neighbour(&#grid, &#buffer, #at)?; })
    }

    fn macro_call(&mut self, mac: &syn::Macro) -> TokenStream {
        if mac
            .path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == "unreachable")
        {
            return self.may_stop();
        }
        let parser = Punctuated::<syn::Expr, Token![,]>::parse_terminated;
        let Ok(args) = mac.parse_body_with(parser) else {
            return self.lose();
        };
        let lasting = std::mem::replace(&mut self.lasting, false);
        let visits = self.visits(&args);
        self.lasting = lasting;
        let stop = self.may_stop();
        quote!(#visits #stop)
    }

    /// A condition as an expression of type `Truth`, its accesses included.
    fn condition(&mut self, expr: &syn::Expr) -> TokenStream {
        if let Some(tokens) = self.pure_condition(expr) {
            return tokens;
        }
        if let Some(tokens) = self.in_any_order(expr) {
            return tokens;
        }
        let (p, native) = (self.probe.clone(), self.native);
        let (a, b) = (internal("a"), internal("b"));
        match peel(expr) {
            syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
                let (left, right) = (self.condition(&binary.left), self.condition(&binary.right));
                quote! {{
                    let #a = #left;
                    if #a.may_hold() {
                        #p.enter(#a);
                        let #b = #right;
                        #p.leave(#a);
                        #a.both(#b)
                    } else {
                        #a
                    }
                }}
            }
            syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::Or(_)) => {
                let (left, right) = (self.condition(&binary.left), self.condition(&binary.right));
                quote! {{
                    let #a = #left;
                    if #a.may_fail() {
                        #p.enter(#a);
                        let #b = #right;
                        #p.leave(#a);
                        #a.not().both(#b.not()).not()
                    } else {
                        #a
                    }
                }}
            }
            syn::Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => {
                let inner = self.condition(&unary.expr);
                quote!(#inner.not())
            }
            other => {
                let visit = self.visit(other);
                quote!({ #visit #native::Truth::Perhaps })
            }
        }
    }

    /// `a && b && …` or `a || b || …` of conditions without accesses, and without conditions within: of those each must be met
    /// that a lane meets.
    fn in_any_order(&mut self, expr: &syn::Expr) -> Option<TokenStream> {
        let syn::Expr::Binary(binary) = peel(expr) else {
            return None;
        };
        if has_branch(expr) {
            return None;
        }
        let method = match binary.op {
            syn::BinOp::And(_) => quote!(all),
            syn::BinOp::Or(_) => quote!(any),
            _ => return None,
        };
        let mut operands = vec![&*binary.right];
        let mut left = peel(&binary.left);
        while let syn::Expr::Binary(inner) = left
            && std::mem::discriminant(&inner.op) == std::mem::discriminant(&binary.op)
        {
            operands.push(&inner.right);
            left = peel(&inner.left);
        }
        operands.push(left);
        let (p, native) = (self.probe.clone(), self.native);
        let mut conditions = Vec::new();
        for operand in operands.into_iter().rev() {
            let truth = self
                .pure_condition(operand)
                .or_else(|| self.in_any_order(operand))?;
            conditions.push(quote! {
                &|#p: &#native::Probe<'_>| ::core::result::Result::<_, #native::Exit>::Ok(#truth)
            });
        }
        Some(quote!(#p.#method(&[#(#conditions),*])?))
    }

    /// The condition of a branch, numbered for the fast body; `None` where it contains an access.
    pub(super) fn guard(&mut self, branch: &syn::ExprIf) -> Option<TokenStream> {
        if has_access(&branch.cond) {
            return None;
        }
        let truth = self.condition(&branch.cond);
        Some(self.numbered(branch, truth))
    }

    fn numbered(&mut self, branch: &syn::ExprIf, truth: TokenStream) -> TokenStream {
        let condition = std::ptr::from_ref(&*branch.cond);
        let followed = self.is_followed(&branch.cond);
        let known = self.guards.get(&condition).copied();
        let number = known.unwrap_or(self.guards.len() as u32);
        if number >= MOST_GUARDS || !self.lasting {
            return truth;
        }
        if known.is_none() {
            let last = self.last == Some(std::ptr::from_ref(branch));
            self.guards.insert(condition, number);
            self.guesses.push(match followed {
                true => guess(branch, last),
                false => Guess::Data,
            });
        }
        let (p, known) = (&self.probe, internal("truth"));
        quote!({ let #known = #truth; #p.__guard(#number, #known) })
    }

    /// Whether the probe may find a condition true or false.
    fn is_followed(&mut self, condition: &syn::Expr) -> bool {
        let followed = self.pure_condition(condition).is_some() || self.in_any_order(condition).is_some();
        followed && !mentions(condition, &self.data)
    }

    fn branch(&mut self, branch: &syn::ExprIf) -> TokenStream {
        let truth = self.condition(&branch.cond);
        let truth = self.numbered(branch, truth);
        let then = self.block(&branch.then_branch);
        let otherwise = branch.else_branch.as_ref().map(|(_, branch)| self.visit(branch));
        let (p, t) = (&self.probe, internal("t"));
        quote! {{
            let #t = #truth;
            if #t.may_hold() {
                #p.enter(#t);
                #then
                #p.leave(#t);
            }
            if #t.may_fail() {
                #p.enter(#t);
                #otherwise
                #p.leave(#t);
            }
        }}
    }

    fn choice(&mut self, choice: &syn::ExprMatch) -> TokenStream {
        let scrutinee = self.visit(&choice.expr);
        let arms: Vec<TokenStream> = choice
            .arms
            .iter()
            .map(|arm| {
                let mark = self.scope.mark();
                self.scope.declare_pattern(&arm.pat, Name::Value);
                let guard = arm.guard.as_ref().map(|(_, guard)| self.visit(guard));
                let body = self.visit(&arm.body);
                self.scope.reset(mark);
                self.in_doubt(&quote!(#guard #body))
            })
            .collect();
        quote!(#scrutinee #(#arms)*)
    }

    fn repeated(&mut self, head: &TokenStream, body: &syn::Block) -> TokenStream {
        let (body, stop) = (self.block(body), self.may_stop());
        self.in_doubt(&quote!(#head #body #stop))
    }

    fn counted(&mut self, expr: &syn::ExprForLoop) -> TokenStream {
        let mut steps = Vec::new();
        let mut inner = peel(&expr.expr);
        while let syn::Expr::MethodCall(call) = inner {
            steps.extend(call.args.iter().map(|step| self.visit(step)));
            inner = peel(&call.receiver);
        }
        let syn::Expr::Range(range) = inner else {
            return self.lose();
        };
        let (Some(start), Some(end)) = (&range.start, &range.end) else {
            return self.lose();
        };
        let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
        let (from, to) = (self.value(start), self.value(end));
        let mark = self.scope.mark();
        let tokens = match (from, to) {
            (Ok(from), Ok(to)) => {
                let (p, soft) = (self.probe.clone(), from.soft && to.soft);
                let (from, to) = (from.tokens, to.tokens);
                let count = internal("count");
                let known = Known {
                    tokens: quote!(#count),
                    soft,
                    loose: false,
                };
                let declared = self.declare(&expr.pat, known);
                let body = self.block(&expr.body);
                let body = self.in_doubt(&quote!(#declared #body));
                quote!(if let ::core::option::Option::Some(#count) = #p.counted(#from, #to, #inclusive) #body)
            }
            (from, to) => {
                // What is followed of one end may have conditions, too.
                let visits = [from, to].map(|end| match end {
                    Ok(Known { tokens, .. }) => quote!(let _ = #tokens;),
                    Err(visit) => visit,
                });
                let visits = quote!(#(#visits)*);
                self.scope.declare_pattern(&expr.pat, Name::Value);
                let body = self.block(&expr.body);
                let body = self.in_doubt(&body);
                quote!(#visits #body)
            }
        };
        self.scope.reset(mark);
        // A step of zero faults.
        let stop = self.may_stop();
        quote!(#(#steps)* #tokens #stop)
    }
}

fn is_assignment(op: &syn::BinOp) -> bool {
    use syn::BinOp;
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Whether some `if` stands in an expression.
fn has_branch(expr: &syn::Expr) -> bool {
    struct Finder(bool);
    impl syn::visit::Visit<'_> for Finder {
        fn visit_expr_if(&mut self, _: &syn::ExprIf) {
            self.0 = true;
        }
    }
    let mut finder = Finder(false);
    syn::visit::Visit::visit_expr(&mut finder, expr);
    finder.0
}

/// The numbers of the conditions that a probe's body asks for: each as the first argument of `__guard`.
pub(super) fn asked(body: TokenStream, numbers: &mut HashSet<u32>) {
    let mut tokens = body.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) if name == "__guard" => {
                if let Some(TokenTree::Group(args)) = tokens.peek()
                    && let Some(TokenTree::Literal(number)) = args.stream().into_iter().next()
                    && let Ok(number) = syn::LitInt::from(number).base10_parse()
                {
                    numbers.insert(number);
                }
            }
            TokenTree::Group(group) => asked(group.stream(), numbers),
            _ => {}
        }
    }
}

/// Whether an expression may reach memory.
fn has_access(expr: &syn::Expr) -> bool {
    struct Finder(bool);
    impl syn::visit::Visit<'_> for Finder {
        fn visit_expr_index(&mut self, _: &syn::ExprIndex) {
            self.0 = true;
        }
        fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
            // Neighbours are read by methods.
            self.0 |= near(&call.method.to_string()).is_some() || call.method == "at";
            syn::visit::visit_expr_method_call(self, call);
        }
    }
    let mut finder = Finder(false);
    syn::visit::Visit::visit_expr(&mut finder, expr);
    finder.0
}
