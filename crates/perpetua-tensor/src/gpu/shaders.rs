//! The text of some kernels in WGSL, as the renderer writes it: for readers, and for programs that hand text to wgpu themselves.
//!
//! Bindings: the result, the operands, a uniform with lengths, sizes and numbers, and the record of faults.

macro_rules! shaders {
    ($($name:ident $file:literal $doc:literal;)*) => {
        $(
            #[doc = $doc]
            pub const $name: &str = include_str!(concat!("shaders/", $file, ".wgsl"));
        )*

        /// All of them, by the names of their files.
        pub const ALL: &[(&str, &str)] = &[$(($file, $name)),*];
    };
}

shaders! {
    ELEMENTWISE_ADD "elementwise_add" "The sum by elements.";
    ELEMENTWISE_MUL "elementwise_mul" "The product by elements.";
    ELEMENTWISE_SUB "elementwise_sub" "The difference by elements.";
    ELEMENTWISE_DIV "elementwise_div" "The quotient by elements.";
    RELU "relu" "The elements above zero, else zero.";
    SIGMOID "sigmoid" "The logistic function.";
    MATMUL_SIMPLE "matmul_simple" "The matrix product, in tiles.";
}
