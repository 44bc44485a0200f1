//! [`names!`](crate::names).

/// Names for C that the linker can give versions, each a jump to the function of the same name in scope.
///
/// What rustc exports is in a version script of its own, without versions, which the linker puts above
/// a library's own (see [`linking`](crate::linking)). So where there are versions (`cfg(versioned)`), rustc
/// does not know of the names: they stand here. Elsewhere the functions carry their names themselves. The
/// names are also listed in `NAMES`, for tests.
#[macro_export]
macro_rules! names {
    ($($name:ident)*) => {
        $(
            // SAFETY: a name that nothing else has, and one jump to a function of the same type,
            // which leaves registers and stack as they are.
            #[cfg(target_arch = "x86_64")]
            core::arch::global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".type ", stringify!($name), ",%function"),
                concat!(stringify!($name), ":"),
                "jmp {function}",
                concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
                function = sym $name,
            );
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            core::arch::global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".type ", stringify!($name), ",%function"),
                concat!(stringify!($name), ":"),
                "b {function}",
                concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
                function = sym $name,
            );
            // SAFETY: as above.
            #[cfg(target_arch = "riscv64")]
            core::arch::global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".type ", stringify!($name), ",%function"),
                concat!(stringify!($name), ":"),
                "tail {function}",
                concat!(".size ", stringify!($name), ", . - ", stringify!($name)),
                function = sym $name,
            );
        )*

        /// All of them.
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}
