//! [`Abreast`]: four vectors as one.
//!
//! A function of many steps, each of which waits for the one before, keeps a processor busy only if it is computed for several
//! vectors at a time, step by step.

use super::{Simd, WORDS};

const VECTORS: usize = 4;

/// Four vectors of an instruction set, all of which take each step before the next one. Not to look up lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abreast<S>(pub(crate) S);

/// What an expression is for each vector. Written out, as in [`arrays`](super::arrays).
macro_rules! each {
    ($vector:ident => $value:expr) => {
        [
            {
                let $vector = 0;
                $value
            },
            {
                let $vector = 1;
                $value
            },
            {
                let $vector = 2;
                $value
            },
            {
                let $vector = 3;
                $value
            },
        ]
    };
}

/// Methods that do the same with each vector.
macro_rules! methods {
    ($(fn $name:ident($($argument:ident: $type:ident),* $(; $count:ident: $plain:ty)?) -> $result:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: Self::$type),* $(, $count: $plain)?) -> Self::$result {
            each!(vector => self.0.$name($($argument[vector]),* $(, $count)?))
        }
    )*};
}

/// Methods of slices, of which each vector has its part.
macro_rules! parts {
    ($(fn $name:ident(load $type:ty) -> $result:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, from: &[$type]) -> Self::$result {
            each!(vector => self.0.$name(&from[vector * S::LANES..]))
        }
    )*};
    ($(fn $name:ident(store $value:ident, $type:ty);)*) => {$(
        #[inline(always)]
        fn $name(self, value: Self::$value, to: &mut [$type]) {
            each!(vector => self.0.$name(value[vector], &mut to[vector * S::LANES..]));
        }
    )*};
}

impl<S: Simd> Simd for Abreast<S> {
    type F = [S::F; VECTORS];
    type I = [S::I; VECTORS];
    type M = [S::M; VECTORS];
    type W = S::W;
    const LANES: usize = VECTORS * S::LANES;
    const REGISTERS: usize = S::REGISTERS / VECTORS;
    const FUSED: bool = S::FUSED;

    methods! {
        fn add(a: F, b: F) -> F;
        fn sub(a: F, b: F) -> F;
        fn mul(a: F, b: F) -> F;
        fn div(a: F, b: F) -> F;
        fn min(a: F, b: F) -> F;
        fn max(a: F, b: F) -> F;
        fn fma(a: F, b: F, c: F) -> F;
        fn sqrt(a: F) -> F;
        fn floor(a: F) -> F;
        fn round(a: F) -> F;
        fn abs(a: F) -> F;
        fn lt(a: F, b: F) -> M;
        fn eq(a: F, b: F) -> M;
        fn select(condition: M, yes: F, no: F) -> F;
        fn bits(a: F) -> I;
        fn of_bits(a: I) -> F;
        fn to_i32(a: F) -> I;
        fn to_f32(a: I) -> F;
        fn iadd(a: I, b: I) -> I;
        fn isub(a: I, b: I) -> I;
        fn imul(a: I, b: I) -> I;
        fn iand(a: I, b: I) -> I;
        fn ior(a: I, b: I) -> I;
        fn ixor(a: I, b: I) -> I;
        fn imin(a: I, b: I) -> I;
        fn imax(a: I, b: I) -> I;
        fn shift_left(a: I; count: u32) -> I;
        fn shift_right(a: I; count: u32) -> I;
        fn doubling_high(a: I, b: I) -> I;
    }

    parts! {
        fn load(load f32) -> F;
        fn load_f16(load u16) -> F;
        fn iload(load i32) -> I;
        fn load_u8(load u8) -> I;
        fn load_i8(load i8) -> I;
    }

    parts! {
        fn store(store F, f32);
        fn store_f16(store F, u16);
        fn istore(store I, i32);
        fn store_u8(store I, u8);
        fn store_i8(store I, i8);
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::F {
        [self.0.splat(value); VECTORS]
    }
    #[inline(always)]
    fn isplat(self, value: i32) -> Self::I {
        [self.0.isplat(value); VECTORS]
    }
    #[inline(always)]
    fn load_partial(self, from: &[f32], fill: f32) -> Self::F {
        each!(vector => {
            self.0.load_partial(from.get(vector * S::LANES..).unwrap_or_default(), fill)
        })
    }
    #[inline(always)]
    fn store_partial(self, value: Self::F, to: &mut [f32]) {
        each!(vector => {
            let to = to.get_mut(vector * S::LANES..).unwrap_or_default();
            self.0.store_partial(value[vector], to);
        });
    }
    #[inline(always)]
    fn sum(self, [a, b, c, d]: Self::F) -> f32 {
        self.0.sum(self.0.add(self.0.add(a, b), self.0.add(c, d)))
    }
    #[inline(always)]
    fn greatest(self, [a, b, c, d]: Self::F) -> f32 {
        self.0.greatest(self.0.max(self.0.max(a, b), self.0.max(c, d)))
    }
    #[inline(always)]
    fn lookup(self, _: Self::F, _: Self::I) -> Self::F {
        unreachable!("lanes of several vectors")
    }

    #[inline(always)]
    fn wsplat(self, value: i16) -> S::W {
        self.0.wsplat(value)
    }
    #[inline(always)]
    fn wload_u8(self, from: &[u8; WORDS]) -> S::W {
        self.0.wload_u8(from)
    }
    #[inline(always)]
    fn wload_i8(self, from: &[i8; WORDS]) -> S::W {
        self.0.wload_i8(from)
    }
    #[inline(always)]
    fn wstore(self, value: S::W, to: &mut [i16; WORDS]) {
        self.0.wstore(value, to);
    }
    #[inline(always)]
    fn wadd(self, a: S::W, b: S::W) -> S::W {
        self.0.wadd(a, b)
    }
    #[inline(always)]
    fn wsub(self, a: S::W, b: S::W) -> S::W {
        self.0.wsub(a, b)
    }
    #[inline(always)]
    fn wshift_left(self, a: S::W, count: u32) -> S::W {
        self.0.wshift_left(a, count)
    }
}
