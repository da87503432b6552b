//! What the language leaves out, one row each: what it is, and what to write instead. `{}` stands for the name
//! found. This is the only place where such texts live; the reader says where, this table says what.

macro_rules! refusals {
    ($($variant:ident: $what:literal => $instead:literal;)*) => {
        /// Something outside the kernel language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Refusal {
            $(#[doc = $what] $variant,)*
        }

        impl Refusal {
            /// Every refusal, in the table's order.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// What it is, and what to write instead; `{}` in either stands for a name.
            #[must_use]
            pub fn row(self) -> (&'static str, &'static str) {
                match self { $(Self::$variant => ($what, $instead),)* }
            }
        }
    };
}

impl Refusal {
    /// The error's text, about something called `name`.
    #[must_use]
    pub fn message(self, name: &str) -> String {
        let (what, instead) = self.row();
        format!("{what} is outside the kernel language: {instead}").replace("{}", name)
    }
}

refusals! {
    // Signatures.
    AsyncFn: "an `async fn`" => "remove `async`; a launch never blocks anyway";
    UnsafeFn: "an `unsafe fn`" => "remove `unsafe`; accesses are checked, and launching is safe";
    ExternFn: "an `extern` function" => "remove the ABI";
    Variadic: "a variadic parameter" => "pass a slice";
    KernelReturn: "a kernel that returns a value" => "store it through a `&mut [T]` parameter";
    TupleParam: "a tuple in the arguments of a kernel, whose layout Rust leaves open," => "take arrays, such as `&[[u32; 2]]`, or a struct with `#[derive(Clone, Copy, GpuType)] #[repr(C)]`";
    OptionParam: "an `Option` or a `Result` as an argument of a kernel" => "pass a `bool` beside the value";
    KernelReceiver: "a kernel with a `self` parameter" => "pass the struct under another name";
    ReceiverType: "this type of `self`" => "write `self`, `&self` or `&mut self`";
    ParamPattern: "a pattern as a parameter of a kernel" => "name the parameter and take it apart with `let`";
    Bound: "this bound" => "bound by a trait, such as `T: Copy`";
    IntrinsicName: "a device function with the name of one of the language's, `{}`," => "give it another name: a kernel that calls it would call the language's";
    ConstParamType: "a const parameter of this type" => "use an integer or `bool`";
    NoGridPos: "a stencil without a position" => "add a parameter `pos: GridPos`";
    TwoGridPos: "a second `GridPos` parameter" => "keep one, and read other cells with `pos.at(dx, dy)`";

    // Types.
    CharType: "the type `char`" => "use `u32`, or `u8` and byte literals such as `b'a'`";
    StrType: "the type `{}`" => "print with `gpu_println!`, or pass bytes as `&[u8]`";
    HeapType: "the heap type `{}`" => "take a slice parameter, or use an array `[T; N]`";
    OptionType: "the type `{}` without its arguments" => "write `Option<T>` or `Result<T, E>`";
    SharedType: "the type `{}`" => "use slice parameters, and `atomic_add(&mut x[i], value)` and its kin to share";
    AtomicType: "the type `{}`" => "use a plain integer, and `atomic_add(&mut x[i], value)` and its kin on it";
    WrappingType: "the type `{}`" => "use the integer itself: kernels' integers wrap, and `wrapping_add` and its kin say so in plain Rust, too";
    SaturatingType: "the type `{}`" => "use the integer itself, and `saturating_add` and its kin";
    NonZeroType: "the type `{}`" => "use the integer itself, and `checked_div` or a test where it may be zero";
    PhantomType: "the type `{}`" => "tell types apart by a const parameter, such as `struct Length<const UNIT: u32>`: memory has no fields without a size";
    RangeType: "the type `{}` here" => "pass or keep both ends";
    RawPointer: "a raw pointer" => "take a slice and index it";
    BranchFunction: "a choice among functions of which a branch declares one" => "declare it before the variable";
    FnPointer: "a function pointer" => "take `impl Fn(f32) -> f32` as a parameter; a variable may be one of several functions by their names: `let f: fn(f32) -> f32 = match … { … };`";
    TraitObject: "a trait object" => "use an enum and `match`, or a type parameter";
    ImplTrait: "`impl Trait` here" => "declare a type parameter, `fn f<T: Trait>(x: T)`, or name the type";
    BareSlice: "a slice without a reference" => "write `&[T]` or `&mut [T]`";
    NeverType: "the type `!`" => "return `()`";
    TypeMacro: "a macro in a type" => "write the type out";
    AssocArg: "this generic argument" => "pass only types and constants";
    OtherType: "this type" => "use scalars, arrays, tuples, structs, and references to them";

    DerefTrait: "`{}` of a type of your own" => "write a method that gives the reference, such as `fn as_slice(&self) -> &[f32]`, and call it";
    SumTrait: "`{}` of a type of your own" => "write `fold(zero, |a, b| a + b)` or its like where items are put together";
    SliceImpl: "an `impl` block of a slice" => "implement the trait for arrays, `impl<const N: usize> Trait for [T; N]`, or write a `#[device]` function that takes the slice";

    // Statements and blocks.
    InnerItem: "an item (`{}`) inside a function" => "move it out, before the function";
    Attribute: "the attribute `{}` on a parameter or inside a function" => "remove it, or decide with a constant";
    UnsafeBlock: "an `unsafe` block" => "remove `unsafe`; accesses are checked, and none is needed";
    AsyncBlock: "an `async` block" => "write the statements as they are";
    TryBlock: "a `try` block" => "test with `if`";
    TooDeep: "nesting this deep" => "split the expression with `let`";

    // Expressions.
    Await: "`.await`" => "remove it; a kernel's lanes run to their end";
    Yield: "`yield`" => "store results through a `&mut [T]` parameter";
    RangeValue: "a range without both ends as a value" => "write both, or write it where it is used: in an index or a `for`";
    Iterator: "the iterator method `{}`" => "end with `for`, `sum`, `product`, `fold`, `reduce`, `min`, `max`, `any`, `all`, `position`, `find`, `find_map`, `count`, `next`, `nth`, `last`, `min_by_key`, `max_by_key` or `for_each`; write other loops out";
    IteratorValue: "an iterator as a value, of `{}`," => "use it where it stands: in `for`, or ended by `sum`, `fold` and their kin; a `let` gives it a name, which may be `mut` unless a `flat_map` in it changes something, or makes its items by more than `map` and `filter`";
    IteratorOrder: "`{}` here" => "call it in front of `filter`, `flat_map` and their kin; what `zip` is given may have them, unless a `flat_map` in it changes something";
    IteratorMove: "`move` before a closure of an iterator that names the changing `{}`" => "remove `move`: the closure ends before what it captures";
    OpenRange: "`for` over a range without a start" => "write the start, such as `0..n`";
    StringLiteral: "a string" => "print with `gpu_println!`; pass bytes as `&[u8]`";
    CharLiteral: "a `char`" => "write a byte literal such as `b'a'`, or its number";
    WideLiteral: "an integer of more than 128 bits" => "use two integers";
    LiteralSuffix: "the literal suffix `{}`" => "use a suffix of the language, such as `u32` or `f32`";
    RefOfValue: "`&mut` of a value that is stored nowhere" => "store it first: `let mut v = …;` then `&mut v`";
    AddressOf: "`&raw`" => "take a reference, or index the slice";
    CastTarget: "a cast to this type" => "cast to a scalar with `as`";
    NotAPlace: "an assignment to a value" => "assign to a local, a field, or an element `x[i]`";
    UnderscoreValue: "`_` as a value" => "write `let _ = …;`, or the value itself";
    CalleeExpr: "calling the value of an expression" => "call a `#[device]` function by its name";
    Recursion: "`{}` calling itself" => "write a loop: devices have no stack of calls";
    HeapCall: "`{}`, which allocates," => "use an array `[T; N]` or a shared array";
    StdCall: "the library function `{}`" => "use the method (`a.min(b)`, `x.sqrt()`), or a `#[device]` function of your own";
    AssocLiteral: "a literal of an associated type" => "name the struct";
    HeapMethod: "the method `{}`, which allocates or points into memory," => "index the slice, or copy into an array `[T; N]`";
    AtomicPlace: "`{}` on a value" => "pass the place: `&mut x[i]`, or a `&mut` parameter";
    OtherExpr: "this expression" => "write it with operators, calls, `if`, `match` and loops";

    // Macros.
    PrintMacro: "the macro `{}!`" => "write `gpu_println!`";
    VecMacro: "the macro `vec!`" => "use an array `[value; N]`, or a slice parameter";
    FormatMacro: "the macro `{}!`" => "print with `gpu_println!`";
    OtherMacro: "the macro `{}!`" => "move its `macro_rules!` into the function, or write out what it expands to";

    // Patterns.
    RestPattern: "this `..` in a pattern" => "write one `..`, or `_` for each element";
    RefutableLet: "a `let` pattern that may not match" => "use `let … else` or `match`";
    LetPattern: "this pattern in `let`" => "use names, `_`, tuples, arrays and structs";
    ForPattern: "a pattern as the variable of `for` over a range of numbers" => "name the number, `for i in 0..n`";
    LetExpr: "`let` as a condition here" => "use it in `if` or `while`, behind `&&` at most";
    RefBinding: "a `ref` binding here" => "bind the value, or take `&place` after it";
    StringPattern: "a string or `char` in a pattern" => "match on bytes or numbers";
    OtherPattern: "this pattern" => "use numbers, ranges, constants, names, `_`, tuples and `|`";

    // Structs and enums.
    NoReprC: "a struct without `#[repr(C)]`" => "add `#[repr(C)]`, so that host and device agree on its layout";
    ReprOption: "the representation `{}`" => "use `#[repr(C)]` on a struct, `#[repr(u32)]` or its like on an enum; pad with fields";
    GenericType: "a generic enum without data" => "leave the parameters out";
    TypeLifetime: "a lifetime of a type with `derive(GpuType)`" => "such types hold no references: keep indices";
    TypeBound: "this bound of a type with `derive(GpuType)`" => "bound the parameter where it is used, on `impl` blocks and functions";
    TypeDefault: "a default for a parameter of a type with `derive(GpuType)`" => "write the argument where the type is used";
    UnionType: "a union" => "use a struct, and `to_bits` and `from_bits` to reinterpret";
    EmptyStruct: "a generic struct without fields" => "leave the parameters out, or add a field";
    FieldType: "a field of this type" => "use scalars, arrays, and other types with `derive(GpuType)`";
    NoEnumRepr: "an enum without an integer `repr`" => "add `#[repr(u32)]` or its like";
    EmptyEnum: "an enum without variants" => "add a variant";
    Discriminant: "a discriminant that is not computed of literals" => "write the number";
    DeriveBehind: "`#[device]` on the type `{}` without a `derive` behind it" => "write `#[device]` before `#[derive(…)]`: kernels then have `Default`, `PartialEq`, `PartialOrd` and `Ord` of what follows";
}
