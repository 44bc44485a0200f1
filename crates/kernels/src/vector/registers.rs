//! What the vectors of all instruction sets share: methods that are a few instructions on registers, and those that copy a
//! vector from memory or into it.

/// The first numbers.
#[inline(always)]
pub(super) fn first<T, const COUNT: usize>(from: &[T]) -> &[T; COUNT] {
    from.first_chunk().expect("as many numbers as a vector has")
}

/// The first numbers, to be written.
#[inline(always)]
pub(super) fn first_mut<T, const COUNT: usize>(to: &mut [T]) -> &mut [T; COUNT] {
    to.first_chunk_mut().expect("as many numbers as a vector has")
}

/// Methods of vectors that are there only on processors which have the instructions, each of a few instructions.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! registers {
    ($(fn $name:ident($self:ident $(, $argument:ident: $type:ty)*) $(-> $result:ty)? = $value:expr;)*) => {$(
        #[inline(always)]
        #[allow(unused_unsafe)] // Some have arrays alone, or call others.
        fn $name($self, $($argument: $type),*) $(-> $result)? {
            // SAFETY: `self` proves that the processor has the instructions, which only work on registers.
            unsafe { $value }
        }
    )*};
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use registers;

/// The methods of [`Simd`](super::Simd) that only copy whole vectors.
macro_rules! copies {
    () => {
        #[inline(always)]
        fn load(self, from: &[f32]) -> Self::F {
            bytemuck::cast(*first::<_, LANES>(from))
        }
        #[inline(always)]
        fn store(self, value: Self::F, to: &mut [f32]) {
            *first_mut::<_, LANES>(to) = bytemuck::cast(value);
        }
        #[inline(always)]
        fn iload(self, from: &[i32]) -> Self::I {
            bytemuck::cast(*first::<_, LANES>(from))
        }
        #[inline(always)]
        fn istore(self, value: Self::I, to: &mut [i32]) {
            *first_mut::<_, LANES>(to) = bytemuck::cast(value);
        }
        #[inline(always)]
        fn wstore(self, value: Self::W, to: &mut [i16; WORDS]) {
            *to = bytemuck::cast(value);
        }
    };
}
pub(super) use copies;
