//! Every instruction set that is here against double precision and plain Rust.

use super::functions::*;
use super::*;
use proptest::prelude::*;

/// One operation on vectors of any instruction set.
trait Operation: Copy {
    fn apply<S: Simd>(self, simd: S, x: S::F, y: S::F) -> S::F;
}

struct Map<'a, O>(O, &'a [f32], &'a [f32], &'a mut [f32]);

impl<O: Operation> Kernel for Map<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(operation, x, y, output) = self;
        let inputs = x.chunks(S::LANES).zip(y.chunks(S::LANES));
        for ((x, y), output) in inputs.zip(output.chunks_mut(S::LANES)) {
            let (x, y) = (simd.load_partial(x, 1.0), simd.load_partial(y, 1.0));
            simd.store_partial(operation.apply(simd, x, y), output);
        }
    }
}

fn isas() -> Vec<Isa> {
    InstructionSet::available().map(Isa::of).collect()
}

/// Distance in units of the last place of the correctly rounded result; 0 if that is what was found.
pub(crate) fn ulps(found: f32, exact: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation)]
    let rounded = exact as f32;
    if found == rounded || (found.is_nan() && exact.is_nan()) {
        return 0.0;
    }
    let ulp = (f64::from(rounded.next_up()) - f64::from(rounded)).abs();
    (f64::from(found) - exact).abs() / ulp
}

fn check(operation: impl Operation, exact: impl Fn(f64) -> f64, range: (f32, f32), bound: f64) {
    let mut random = fastrand::Rng::with_seed(7);
    let mut inputs = vec![0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, 1e-39];
    inputs.extend((0..40_000).map(|_| range.0 + (range.1 - range.0) * random.f32()));
    inputs.extend((0..5_000).map(|_| (random.f32() - 0.5) * 10_f32.powi(random.i32(-30..1))));
    inputs.retain(|x| !(*x < range.0 || *x > range.1) || x.is_nan());
    for vectors in Vectors::all() {
        let mut output = vec![0.0; inputs.len()];
        vectors.run(Map(operation, &inputs, &inputs, &mut output));
        for (x, found) in inputs.iter().zip(output) {
            let error = ulps(found, exact(f64::from(*x)));
            assert!(error <= bound, "{vectors:?}: {found} for {x}: {error}");
        }
    }
}

macro_rules! operation {
    ($name:ident, |$simd:ident, $x:ident, $y:ident| $value:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Operation for $name {
            #[inline(always)]
            fn apply<S: Simd>(self, $simd: S, $x: S::F, $y: S::F) -> S::F {
                $value
            }
        }
    };
}

/// GELU in double precision: below 0 with the complementary function, which loses nothing there.
fn exact_gelu(x: f64) -> f64 {
    x / 2.0 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

#[test]
fn functions_are_as_near_as_they_say() {
    operation!(Exp, |simd, x, _y| exp(simd, x));
    operation!(ExpOfNegative, |simd, x, _y| exp_of_negative(simd, x));
    operation!(ExpMinus1, |simd, x, _y| exp_minus_1_of_negative(simd, x));
    operation!(Logistic, |simd, x, _y| logistic(simd, x));
    operation!(Tanh, |simd, x, _y| tanh(simd, x));
    operation!(Log, |simd, x, _y| log(simd, x));
    operation!(Gelu, |simd, x, _y| gelu(simd, x));
    check(Gelu, exact_gelu, (-13.0, 20.0), 8.0);
    check(Exp, f64::exp, (-110.0, 100.0), 2.0);
    check(ExpOfNegative, f64::exp, (-87.0, 0.0), 2.0);
    check(ExpMinus1, f64::exp_m1, (-100.0, 0.0), 3.0);
    check(Logistic, |x| 1.0 / (1.0 + (-x).exp()), (-87.0, 100.0), 3.0);
    check(Tanh, f64::tanh, (-12.0, 12.0), 3.0);
    check(Log, f64::ln, (0.0, f32::INFINITY), 2.0);
    check(Log, f64::ln, (0.3, 3.0), 2.0);
}

#[test]
fn logarithms_of_what_has_none() {
    operation!(Log, |simd, x, _y| log(simd, x));
    for isa in isas() {
        let inputs = [0.0, -1.0, f32::INFINITY, f32::NAN];
        let mut output = [0.0; 4];
        isa.run(Map(Log, &inputs, &inputs, &mut output));
        assert_eq!(output[0], f32::NEG_INFINITY);
        assert!(output[1].is_nan() && output[3].is_nan());
        assert_eq!(output[2], f32::INFINITY);
    }
}

/// What is tested: instruction sets, and the vectors that others have.
#[derive(Debug, Clone, Copy)]
enum Vectors {
    Of(Isa),
    Arrays,
    /// Four of these.
    Abreast,
}

impl Vectors {
    fn all() -> Vec<Self> {
        [Self::Arrays, Self::Abreast].into_iter().chain(isas().into_iter().map(Self::Of)).collect()
    }

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Of(isa) => isa.run(kernel),
            Self::Arrays => kernel.run(arrays::Arrays),
            Self::Abreast => kernel.run(Abreast(arrays::Arrays)),
        }
    }
}

/// By operation the results of all elements.
struct Results<T>(Vec<Vec<T>>);

impl<T> Results<T> {
    /// Of the next elements, from each operation.
    fn keep(&mut self, results: Vec<Vec<T>>) {
        self.0.resize_with(results.len(), Vec::new);
        self.0.iter_mut().zip(results).for_each(|(all, next)| all.extend(next));
    }
}

struct Integers<'a>(&'a [i32], &'a [i32], u32, &'a mut Results<i32>);

impl Kernel for Integers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(a, b, count, results) = self;
        for (a, b) in a.chunks_exact(S::LANES).zip(b.chunks_exact(S::LANES)) {
            let (a, b) = (simd.iload(a), simd.iload(b));
            let mut kept = Vec::new();
            let mut keep = |value| {
                let mut all = vec![0; S::LANES];
                simd.istore(value, &mut all);
                kept.push(all);
            };
            keep(simd.iadd(a, b));
            keep(simd.isub(a, b));
            keep(simd.imul(a, b));
            keep(simd.ixor(a, simd.iand(a, simd.ior(b, a))));
            keep(simd.imin(a, b));
            keep(simd.imax(a, b));
            keep(simd.shift_left(a, count));
            keep(simd.shift_right(a, count));
            keep(simd.doubling_high(a, b));
            keep(simd.bits(simd.to_f32(a)));
            let bounded = simd.imax(simd.isplat(0), simd.imin(simd.isplat(255), a));
            let mut bytes = [0_u8; 16];
            simd.store_u8(bounded, &mut bytes);
            keep(simd.load_u8(&bytes));
            let mut bytes = [0_i8; 16];
            simd.store_i8(simd.isub(bounded, simd.isplat(128)), &mut bytes);
            keep(simd.load_i8(&bytes));
            // Also numbers that are far out of range.
            let four = [0, 1, 2].map(|shift| simd.shift_right(bounded, shift));
            let four = [four[0], four[1], four[2], a];
            let mut bytes = [0_u8; 64];
            simd.store_four_u8(four, (3, 250), &mut bytes);
            for part in bytes.chunks(S::LANES).take(4) {
                keep(simd.load_u8(part));
            }
            let mut bytes = [0_i8; 64];
            let four = four.map(|value| simd.isub(value, simd.isplat(128)));
            simd.store_four_i8(four, (-125, 120), &mut bytes);
            for part in bytes.chunks(S::LANES).take(4) {
                keep(simd.load_i8(part));
            }
            results.keep(kept);
        }
        // Of 16 bits, all at once.
        let bytes: [u8; WORDS] = std::array::from_fn(|index| a[index].to_ne_bytes()[0]);
        let (x, y) = (simd.wload_u8(&bytes), simd.wload_i8(&bytes.map(u8::cast_signed)));
        let all = [x, y, simd.wadd(x, y), simd.wsub(y, x), simd.wshift_left(y, count % 16)];
        let words = all.into_iter().chain([simd.wsplat(-7)]).map(|value| {
            let mut words = [0; WORDS];
            simd.wstore(value, &mut words);
            words.map(i32::from).to_vec()
        });
        results.0.extend(words);
    }
}

struct Floats<'a>(&'a [f32], &'a [f32], &'a mut Results<u32>);

impl Kernel for Floats<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(a, b, results) = self;
        for (a, b) in a.chunks_exact(S::LANES).zip(b.chunks_exact(S::LANES)) {
            let (a, b) = (simd.load(a), simd.load(b));
            let mut kept = Vec::new();
            let mut keep = |value| {
                let mut all = vec![0.0_f32; S::LANES];
                simd.store(value, &mut all);
                // All NaNs are one.
                kept.push(
                    all.iter().map(|it| if it.is_nan() { 1 } else { it.to_bits() }).collect(),
                );
            };
            for value in [simd.add(a, b), simd.sub(a, b), simd.mul(a, b), simd.div(a, b)] {
                keep(value);
            }
            keep(simd.min(a, b));
            keep(simd.max(a, b));
            for value in [simd.sqrt(a), simd.floor(a), simd.round(a), simd.abs(a)] {
                keep(value);
            }
            keep(simd.select(simd.lt(a, b), a, b));
            keep(simd.select(simd.eq(a, b), a, b));
            let mut halves = [0; 16];
            simd.store_f16(a, &mut halves);
            keep(simd.load_f16(&halves));
            results.keep(kept);
        }
    }
}

proptest! {
    #[test]
    fn integers_are_those_of_plain_rust(
        a in proptest::array::uniform16(any::<i32>()),
        b in proptest::array::uniform16(any::<i32>()),
        count in 0..32_u32,
    ) {
        let results: Vec<Vec<Vec<i32>>> = Vectors::all().into_iter().map(|vectors| {
            let mut results = Results(Vec::new());
            vectors.run(Integers(&a, &b, count, &mut results));
            results.0
        }).collect();
        for result in &results[1..] {
            prop_assert_eq!(result, &results[0]);
        }
    }

    #[test]
    fn floats_are_those_of_plain_rust(
        a in proptest::array::uniform16(any::<u32>().prop_map(f32::from_bits)),
        b in proptest::array::uniform16(any::<u32>().prop_map(f32::from_bits)),
        small in proptest::array::uniform16(-100_000.0..100_000_f32),
    ) {
        for a in [&a, &small] {
            let results: Vec<Vec<Vec<u32>>> = Vectors::all().into_iter().map(|vectors| {
                let mut results = Results(Vec::new());
                vectors.run(Floats(a, &b, &mut results));
                results.0
            }).collect();
            for result in &results[1..] {
                prop_assert_eq!(result, &results[0]);
            }
        }
    }
}

#[test]
fn few_bytes_are_what_is_there_and_nothing_beside_them() {
    for count in 0..=16_usize {
        let from: Vec<i8> = (0..16).map(|index| index * 7 - 50).collect();
        for set in InstructionSet::available() {
            let lanes = Isa::of(set).lanes();
            let mut to = [99_i8; 18];
            Isa::of(set).run(Copied { from: &from[..count], to: &mut to[1..1 + count] });
            let copied = count.min(lanes);
            assert_eq!(to[1..1 + copied], from[..copied], "{set}");
            assert_eq!([to[0], to[1 + count]], [99, 99], "{set}");
        }
        let bytes: &[u8] = bytemuck::cast_slice(&from[..count]);
        let mut expected = [0; 16];
        expected[..count].copy_from_slice(bytes);
        assert_eq!(few_bytes(bytes).to_le_bytes(), expected);
    }
}

/// Copies bytes through a vector.
struct Copied<'a> {
    from: &'a [i8],
    to: &'a mut [i8],
}

impl Kernel for Copied<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let value = load_bytes_or(simd, self.from, 3);
        store_bytes_partial(simd, value, self.to);
    }
}

/// The vectors of which some lane is below 0.
struct Below<'a>(&'a [f32], &'a mut Vec<bool>);

impl Kernel for Below<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for values in self.0.chunks_exact(S::LANES) {
            let condition = simd.lt(simd.load(values), simd.splat(0.0));
            self.1.extend([simd.any(condition)].repeat(S::LANES));
        }
    }
}

#[test]
fn one_lane_is_enough() {
    for vectors in Vectors::all() {
        for lane in 0..64 {
            let mut values = [0.0; 64];
            values[lane] = -1e-30;
            let mut found = Vec::new();
            vectors.run(Below(&values, &mut found));
            let lanes = found.iter().filter(|it| **it).count();
            assert!(found[lane] && lanes < 64 && found.len() == 64, "{vectors:?}: {found:?}");
            found.clear();
            vectors.run(Below(&[f32::NAN; 64], &mut found));
            assert!(!found.contains(&true), "{vectors:?}");
        }
    }
}
