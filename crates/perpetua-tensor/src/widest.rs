//! Loops of the host, compiled for every processor, and for those of x86-64 that have AVX2 or AVX-512, which run that.

/// Defines functions: `fn name[generics](arguments) -> result { .. }`. What closures they take do is compiled with them.
macro_rules! widest {
    ($($(#[$doc:meta])* fn $name:ident[$($generic:tt)*]($($arg:ident: $ty:ty),* $(,)?) -> $result:ty $body:block)*) => { $(
        $(#[$doc])*
        fn $name<$($generic)*>($($arg: $ty),*) -> $result {
            #[inline(always)]
            fn everywhere<$($generic)*>($($arg: $ty),*) -> $result $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2<$($generic)*>($($arg: $ty),*) -> $result {
                    everywhere($($arg),*)
                }
                #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
                fn with_avx512<$($generic)*>($($arg: $ty),*) -> $result {
                    everywhere($($arg),*)
                }
                let has_avx512 = std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512dq")
                    && std::arch::is_x86_feature_detected!("avx512vl");
                if has_avx512 {
                    // SAFETY: the processor has what the function is compiled for.
                    return unsafe { with_avx512($($arg),*) };
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2.
                    return unsafe { with_avx2($($arg),*) };
                }
            }
            everywhere($($arg),*)
        }
    )* };
}
pub(crate) use widest;
