//! RFFT2D: the discrete Fourier transform of real images.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[..., height, width]` | TENSOR_FLOAT32 |
//! | input 1 | lengths | `[2]`: of the transform, each a power of 2 | TENSOR_INT32 |
//! | output 0 | output | `[..., lengths[0], lengths[1] / 2 + 1]` | TENSOR_COMPLEX64 |
//!
//! `output[u, v] = sum input[y, x] exp(-2 pi i (u y / lengths[0] + v x / lengths[1]))`, of which the half
//! is computed that the other follows from. The input is cut, or filled with zeros, to the lengths. Computed
//! in double precision and rounded once.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use std::f64::consts::PI;

/// RFFT2D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RealFourier {
    /// Lengths of the transform, powers of 2: along the height and the width.
    pub lengths: [u32; 2],
}

impl Operation for RealFourier {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(2..=usize::MAX)?;
        call.input(1).expect_rank(1)?;
        call.input(1).expect_length(0, Some(2))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let given = call.input(1);
        let length = |length: i32| {
            u32::try_from(length)
                .ok()
                .filter(|length| length.is_power_of_two())
                .ok_or_else(|| given.wrong("value", length, "a power of 2"))
        };
        match given.i32s()?[..] {
            [height, width] => Ok(Self { lengths: [length(height)?, length(width)?] }),
            _ => Err(given.wrong("shape", &given.shape, "two lengths")),
        }
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let Some(lengths) = call.input(0).shape.lengths() else {
            return Ok(vec![Shape::UNKNOWN]);
        };
        let mut lengths = lengths.to_vec();
        if let [.., height, width] = &mut lengths[..] {
            *height = Some(self.lengths[0]);
            *width = Some(self.lengths[1] / 2 + 1);
        }
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let mut stored: Vec<[u8; 8]> = output.allocate(&dimensions)?;
        if dimensions.contains(&0) {
            return Ok(vec![output.with_bytes(dimensions, stored.into_flattened())]);
        }
        let given = input.lengths()?;
        let elements = input.f32s()?;
        let [height, width] = [given[given.len() - 2], given[given.len() - 1]];
        let [rows, columns] = self.lengths.map(|length| length as usize);
        let half = columns / 2 + 1;
        let across = Transform::of(call, columns)?;
        let down = Transform::of(call, rows)?;
        let mut line: Vec<Complex> = call.room(columns.max(rows))?;
        let mut image: Vec<Complex> = call.room(rows.saturating_mul(half))?;
        let images: usize = given[..given.len() - 2].iter().product();
        for at in 0..images {
            image.clear();
            for row in 0..rows {
                call.work(columns)?;
                line.clear();
                let from = (at * height + row) * width;
                let there = if row < height { width.min(columns) } else { 0 };
                let source = elements.get(from..from + there).unwrap_or_default();
                line.extend(source.iter().map(|it| Complex { re: f64::from(*it), im: 0.0 }));
                line.resize(columns, Complex::ZERO);
                // Of rows that are all zero so is the transform.
                if there > 0 {
                    across.run(call, &mut line)?;
                }
                image.extend_from_slice(&line[..half]);
            }
            if rows > 1 {
                for column in 0..half {
                    line.clear();
                    line.extend(image[column..].iter().step_by(half));
                    down.run(call, &mut line)?;
                    for (row, value) in line.iter().enumerate() {
                        image[row * half + column] = *value;
                    }
                }
            }
            call.each(&image, |value| {
                let [a, b, c, d] = real::round(value.re).to_le_bytes();
                let [e, f, g, h] = real::round(value.im).to_le_bytes();
                stored.push([a, b, c, d, e, f, g, h]);
            })?;
        }
        Ok(vec![output.with_bytes(dimensions, stored.into_flattened())])
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    const ZERO: Self = Self { re: 0.0, im: 0.0 };

    fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    fn minus(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }

    fn times(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

/// The fast transform of lines of one length, a power of 2: decimation in time (Cooley and Tukey).
struct Transform {
    /// `exp(-2 pi i k / length)` for the first half of the circle.
    turns: Vec<Complex>,
    length: usize,
}

impl Transform {
    fn of(call: &Call<'_>, length: usize) -> Result<Self, Fault> {
        let mut turns: Vec<Complex> = call.room(length / 2)?;
        // Lengths have 32 bits.
        #[allow(clippy::cast_precision_loss)]
        call.each(0..length / 2, |k| {
            let (sin, cos) = (-2.0 * PI * k as f64 / length as f64).sin_cos();
            turns.push(Complex { re: cos, im: sin });
        })?;
        Ok(Self { turns, length })
    }

    fn run(&self, call: &Call<'_>, line: &mut [Complex]) -> Result<(), Fault> {
        let bits = self.length.trailing_zeros();
        call.each(0..self.length, |at| {
            let other = at.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
            if at < other {
                line.swap(at, other);
            }
        })?;
        let mut size = 2;
        while size <= self.length {
            let step = self.length / size;
            for block in line.chunks_exact_mut(size) {
                call.work(size)?;
                let (lower, upper) = block.split_at_mut(size / 2);
                let turns = self.turns.iter().step_by(step);
                for ((a, b), turn) in lower.iter_mut().zip(upper).zip(turns) {
                    let turned = b.times(*turn);
                    (*a, *b) = (a.plus(turned), a.minus(turned));
                }
            }
            size *= 2;
        }
        Ok(())
    }
}
