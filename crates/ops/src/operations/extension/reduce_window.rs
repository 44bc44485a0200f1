//! REDUCE_WINDOW: what a window sees at each of its positions, reduced to one element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any, 1 axis or more | floats, integers, bool8; quantized as stored |
//! | input 1 | initial value | one element | as the input |
//! | input 2 | window | `[rank]`, 1 or more each | TENSOR_INT32 |
//! | input 3 | strides | `[rank]`, 1 or more each | TENSOR_INT32 |
//! | input 4 | dilations | `[rank]`, 1 or more each | TENSOR_INT32 |
//! | input 5 | function | scalar: 0 is sum, 1 product, 2 least, 3 greatest, 4 all, 5 any | INT32 |
//! | output 0 | output | by axis `(length - (window - 1) * dilation - 1) / stride + 1`; 0 where the window does not fit | as the input |
//!
//! Begins with the initial value and takes the elements of the window in their order, the last axis
//! fastest. Integers wrap.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::double::{doubles, is_double, with_doubles};
use crate::rules::movement::strides;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;

/// REDUCE_WINDOW.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReduceWindow {
    /// By axis: how many elements the window sees.
    pub window: Vec<u32>,
    /// By axis: from one position of the window to the next.
    pub strides: Vec<u32>,
    /// By axis: from one element that the window sees to the next.
    pub dilations: Vec<u32>,
    /// What becomes of them.
    pub function: Function,
}

/// How elements are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
    /// Whether none is 0.
    All,
    /// Whether any is not 0.
    Any,
}

/// The function on floats of one size.
macro_rules! of_reals {
    ($name:ident, $Real:ty) => {
        pub(super) fn $name(self) -> fn($Real, $Real) -> $Real {
            match self {
                Self::Sum => |a, b| a + b,
                Self::Product => |a, b| a * b,
                // The first stays if they do not compare.
                Self::Least => |a, b| if b < a { b } else { a },
                Self::Greatest => |a, b| if b > a { b } else { a },
                Self::All => |a, b| <$Real>::from(a != 0.0 && b != 0.0),
                Self::Any => |a, b| <$Real>::from(a != 0.0 || b != 0.0),
            }
        }
    };
}

impl Function {
    /// In the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Sum, Self::Product, Self::Least, Self::Greatest, Self::All, Self::Any];

    of_reals!(of_floats, f32);
    of_reals!(of_doubles, f64);

    pub(super) fn of_integers(self) -> fn(i64, i64) -> i64 {
        match self {
            Self::Sum => i64::wrapping_add,
            Self::Product => i64::wrapping_mul,
            Self::Least => Ord::min,
            Self::Greatest => Ord::max,
            Self::All => |a, b| i64::from(a != 0 && b != 0),
            Self::Any => |a, b| i64::from(a != 0 || b != 0),
        }
    }
}

impl Operation for ReduceWindow {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=usize::MAX)?;
        let rank = input.shape.rank().and_then(|rank| u32::try_from(rank).ok());
        for at in 2..5 {
            call.input(at).expect_rank(1)?;
            call.input(at).expect_length(0, rank)?;
        }
        Ok(())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let numbers = |given: &Argument<'_>| -> Result<Vec<u32>, Fault> {
            let number = |number: i32| match u32::try_from(number) {
                Ok(number @ 1..) => Ok(number),
                _ => Err(given.wrong("value", number, "1 or more")),
            };
            given.i32_per_axis()?.into_iter().map(number).collect()
        };
        let function = call.input(5);
        let number = function.i32()?;
        let of_number = usize::try_from(number).ok().and_then(|at| Function::ALL.get(at));
        Ok(Self {
            window: numbers(call.input(2))?,
            strides: numbers(call.input(3))?,
            dilations: numbers(call.input(4))?,
            function: *of_number.ok_or_else(|| function.wrong("value", number, "0 to 5"))?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let Some(lengths) = call.input(0).shape.lengths() else {
            return Ok(vec![Shape::of_rank(self.window.len())]);
        };
        for at in 2..5 {
            let given = call.input(at);
            given.expect_length(0, u32::try_from(lengths.len()).ok())?;
        }
        let positions = lengths.iter().enumerate().map(|(axis, length)| {
            let length = u64::from((*length)?);
            let [window, stride, dilation] =
                [&self.window, &self.strides, &self.dilations].map(|it| u64::from(it[axis]));
            let seen = (window - 1) * dilation + 1;
            let positions = length.checked_sub(seen).map_or(0, |rest| rest / stride + 1);
            u32::try_from(positions).ok()
        });
        Ok(vec![Shape::new(positions.collect::<Vec<_>>())])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = self.output_dimensions(call)?;
        let (input, initial, output) = (call.input(0), call.input(1), call.output(0));
        if output.is_float() {
            let first = one(initial, initial.f32s()?)?;
            let reduced =
                self.reduced(call, &dimensions, &input.f32s()?, first, self.function.of_floats())?;
            return Ok(vec![output.with_f32s(dimensions, &reduced)?]);
        }
        if is_double(output) {
            let first = one(initial, doubles(initial)?)?;
            let function = self.function.of_doubles();
            let reduced = self.reduced(call, &dimensions, &doubles(input)?, first, function)?;
            return Ok(vec![with_doubles(output, dimensions, &reduced)?]);
        }
        let first = one(initial, wide(initial)?)?;
        let reduced =
            self.reduced(call, &dimensions, &wide(input)?, first, self.function.of_integers())?;
        Ok(vec![stored(output, dimensions, &reduced)?])
    }
}

impl ReduceWindow {
    fn reduced<T: Copy>(
        &self,
        call: &Call<'_>,
        dimensions: &[u32],
        elements: &[T],
        initial: T,
        function: fn(T, T) -> T,
    ) -> Result<Vec<T>, Fault> {
        let mut results = call.output(0).allocate(dimensions)?;
        if dimensions.contains(&0) {
            return Ok(results);
        }
        // A window that fits sees no element twice, and so the product is one of what is in memory.
        let strides = strides(&call.input(0).lengths()?);
        let steps = |by: &[u32]| -> Vec<usize> {
            strides.iter().zip(by).map(|(stride, by)| stride * *by as usize).collect()
        };
        let seen = self.window.iter().map(|length| *length as usize).product();
        let mut places = call.room(seen)?;
        for_each_index(call, &self.window, &steps(&self.dilations), |place, _| {
            places.push(place);
            Ok(())
        })?;
        for_each_index(call, dimensions, &steps(&self.strides), |first, _| {
            let mut result = initial;
            call.each(&places, |place| result = function(result, elements[first + place]))?;
            results.push(result);
            Ok(())
        })?;
        Ok(results)
    }
}

/// The single element of an argument.
fn one<T: Copy>(argument: &Argument<'_>, elements: Vec<T>) -> Result<T, Fault> {
    match elements[..] {
        [one] => Ok(one),
        _ => Err(argument.wrong("shape", &argument.shape, "one element")),
    }
}

/// Visits all indexes below some lengths, none of which is 0, in their order: where each is with these
/// strides, and the index.
pub(super) fn for_each_index(
    call: &Call<'_>,
    lengths: &[u32],
    strides: &[usize],
    mut visit: impl FnMut(usize, &[u32]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut index = vec![0; lengths.len()];
    let mut place = 0;
    loop {
        call.work(1)?;
        visit(place, &index)?;
        let mut axis = lengths.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return Ok(()) };
            axis = next;
            index[axis] += 1;
            place += strides[axis];
            if index[axis] < lengths[axis] {
                break;
            }
            place -= strides[axis] * lengths[axis] as usize;
            index[axis] = 0;
        }
    }
}
