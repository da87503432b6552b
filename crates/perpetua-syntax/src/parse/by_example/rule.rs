//! Rules of macros: what they take, read from a call's tokens, and what is in what they give.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Delimiter, Group, Ident, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};

/// What a rule takes.
pub(super) enum Part {
    Token(String),
    Group(Delimiter, Vec<Part>),
    /// `$name:kind`.
    Fragment(String, String),
    /// `$(…),*`.
    Repeat(Vec<Part>, Option<String>, char),
}

pub(super) struct Rule {
    pub(super) takes: Vec<Part>,
    pub(super) gives: TokenStream,
}

/// What a name of a rule stands for.
#[derive(Clone)]
pub(super) enum Bound {
    One(TokenStream),
    Many(Vec<Names>),
}

pub(super) type Names = HashMap<String, Bound>;

/// The tokens of a repetition behind `$(…)`: what stands between, and the sign.
pub(super) fn repetition(
    tokens: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>,
) -> Option<(Option<TokenTree>, char)> {
    let sign = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => Some(punct.as_char()).filter(|c| "*+?".contains(*c)),
        _ => None,
    };
    let first = tokens.next()?;
    if let Some(c) = sign(&first) {
        return Some((None, c));
    }
    let second = tokens.next()?;
    sign(&second).map(|c| (Some(first), c))
}

fn parts(tokens: TokenStream) -> Option<Vec<Part>> {
    let mut tokens = tokens.into_iter().peekable();
    let mut parts = Vec::new();
    while let Some(token) = tokens.next() {
        parts.push(match token {
            TokenTree::Punct(punct) if punct.as_char() == '$' => match tokens.next()? {
                TokenTree::Group(group) => {
                    let (between, sign) = repetition(&mut tokens)?;
                    let between = between.map(|token| token.to_string());
                    Part::Repeat(self::parts(group.stream())?, between, sign)
                }
                TokenTree::Ident(name) if name == "crate" => Part::Token(name.to_string()),
                TokenTree::Ident(name) => {
                    let colon = tokens.next().filter(|token| token.to_string() == ":");
                    let (Some(_), Some(TokenTree::Ident(kind))) = (colon, tokens.next()) else {
                        return None;
                    };
                    Part::Fragment(name.to_string(), kind.to_string())
                }
                _ => return None,
            },
            TokenTree::Group(group) => Part::Group(group.delimiter(), self::parts(group.stream())?),
            token => Part::Token(token.to_string()),
        });
    }
    Some(parts)
}

/// The rules of a `macro_rules!`; `None` where they are written as none.
pub(super) fn rules(mac: &syn::Macro) -> Option<Vec<Rule>> {
    let mut tokens = mac.tokens.clone().into_iter();
    let mut rules = Vec::new();
    while let Some(token) = tokens.next() {
        let TokenTree::Group(takes) = token else {
            return None;
        };
        tokens.next().filter(|token| token.to_string() == "=")?;
        tokens.next().filter(|token| token.to_string() == ">")?;
        let Some(TokenTree::Group(gives)) = tokens.next() else {
            return None;
        };
        rules.push(Rule {
            takes: parts(takes.stream())?,
            gives: gives.stream(),
        });
        match tokens.next() {
            Some(token) if token.to_string() != ";" => return None,
            _ => {}
        }
    }
    Some(rules)
}

fn fragment(input: ParseStream<'_>, kind: &str) -> syn::Result<TokenStream> {
    Ok(match kind {
        "expr" | "expr_2021" => {
            let tokens = input.parse::<syn::Expr>()?.into_token_stream();
            match tokens.clone().into_iter().count() {
                0 | 1 => tokens,
                // One operand, whatever stands around it.
                _ => TokenTree::from(Group::new(Delimiter::None, tokens)).into(),
            }
        }
        // `_` is none.
        "ident" if input.peek(syn::Token![_]) => return Err(input.error("a name")),
        "ident" => input.call(Ident::parse_any)?.into_token_stream(),
        "ty" => input.parse::<syn::Type>()?.into_token_stream(),
        "path" => input.parse::<syn::Path>()?.into_token_stream(),
        "pat" => input
            .call(syn::Pat::parse_multi_with_leading_vert)?
            .into_token_stream(),
        "pat_param" => input.call(syn::Pat::parse_single)?.into_token_stream(),
        "literal" => {
            let sign = input.parse::<Option<syn::Token![-]>>()?;
            let literal = input.parse::<syn::Lit>()?;
            let mut tokens = sign.into_token_stream();
            literal.to_tokens(&mut tokens);
            match sign {
                // One operand, as an expression is.
                Some(_) => TokenTree::from(Group::new(Delimiter::None, tokens)).into(),
                None => tokens,
            }
        }
        "tt" => token(input)?,
        "block" => input.parse::<syn::Block>()?.into_token_stream(),
        "stmt" => match input.parse::<syn::Stmt>()? {
            syn::Stmt::Expr(expr, _) => expr.into_token_stream(),
            stmt => stmt.into_token_stream(),
        },
        "item" => input.parse::<syn::Item>()?.into_token_stream(),
        "lifetime" => input.parse::<syn::Lifetime>()?.into_token_stream(),
        "vis" => input.parse::<syn::Visibility>()?.into_token_stream(),
        "meta" => input.parse::<syn::Meta>()?.into_token_stream(),
        _ => return Err(input.error("not a kind of fragment")),
    })
}

/// A group, or a token as Rust divides text: `+=` is one.
fn token(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    const TOGETHER: [&str; 25] = [
        "<<=", ">>=", "...", "..=", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "<<", ">>", "==", "!=",
        "<=", ">=", "&&", "||", "->", "=>", "<-", "::", "..",
    ];
    let first = input.parse::<TokenTree>()?;
    let mut text = String::new();
    let mut tokens = vec![first.clone()];
    if let TokenTree::Punct(punct) = &first {
        text.push(punct.as_char());
        let mut is_joint = punct.spacing() == Spacing::Joint && punct.as_char() != '\'';
        while is_joint {
            let ahead = input.fork();
            let TokenTree::Punct(next) = ahead.parse::<TokenTree>()? else {
                break;
            };
            text.push(next.as_char());
            if !TOGETHER.iter().any(|known| known.starts_with(&text)) {
                break;
            }
            input.advance_to(&ahead);
            is_joint = next.spacing() == Spacing::Joint;
            tokens.push(TokenTree::Punct(next));
        }
    }
    Ok(tokens.into_iter().collect())
}

fn next_is(input: ParseStream<'_>, text: &str) -> syn::Result<()> {
    let token = input.parse::<TokenTree>()?;
    match super::marks::plain(&token.to_string()) == super::marks::plain(text) {
        true => Ok(()),
        false => Err(syn::Error::new(token.span(), "another token")),
    }
}

fn take(parts: &[Part], input: ParseStream<'_>, names: &mut Names) -> syn::Result<()> {
    for part in parts {
        match part {
            Part::Token(text) => next_is(input, text)?,
            Part::Group(delimiter, inner) => match input.parse::<TokenTree>()? {
                TokenTree::Group(group) if group.delimiter() == *delimiter => {
                    let read = |input: ParseStream<'_>| take_all(inner, input, names);
                    read.parse2(group.stream())?;
                }
                token => return Err(syn::Error::new(token.span(), "another token")),
            },
            Part::Fragment(name, kind) => {
                names.insert(name.clone(), Bound::One(fragment(input, kind)?));
            }
            Part::Repeat(inner, between, sign) => {
                let mut turns: Vec<Names> = Vec::new();
                while !(input.is_empty() || *sign == '?' && turns.len() == 1) {
                    let ahead = input.fork();
                    let separated = match between {
                        Some(between) if !turns.is_empty() => next_is(&ahead, between),
                        _ => Ok(()),
                    };
                    let mut turn = Names::new();
                    if separated.and_then(|()| take(inner, &ahead, &mut turn)).is_err() {
                        break;
                    }
                    input.advance_to(&ahead);
                    turns.push(turn);
                }
                if *sign == '+' && turns.is_empty() {
                    return Err(input.error("one more"));
                }
                let mut inside = HashSet::new();
                fragments(inner, &mut inside);
                for name in inside {
                    names.insert(name, Bound::Many(turns.clone()));
                }
            }
        }
    }
    Ok(())
}

pub(super) fn take_all(parts: &[Part], input: ParseStream<'_>, names: &mut Names) -> syn::Result<()> {
    take(parts, input, names)?;
    match input.is_empty() {
        true => Ok(()),
        false => Err(input.error("too much")),
    }
}

/// The names of the fragments in parts.
fn fragments(parts: &[Part], found: &mut HashSet<String>) {
    for part in parts {
        match part {
            Part::Token(_) => {}
            Part::Fragment(name, _) => {
                found.insert(name.clone());
            }
            Part::Group(_, inner) | Part::Repeat(inner, ..) => fragments(inner, found),
        }
    }
}

/// The names behind `$` in a body.
pub(super) fn used_names(body: TokenStream, found: &mut HashSet<String>) {
    let mut dollar = false;
    for token in body {
        match token {
            TokenTree::Group(group) => used_names(group.stream(), found),
            TokenTree::Ident(name) if dollar => {
                found.insert(name.to_string());
                dollar = false;
            }
            token => dollar = token.to_string() == "$",
        }
    }
}
