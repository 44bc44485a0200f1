//! `AudioSpectrogram` and `Mfcc`: LiteRT's custom operators that make features of sound.
//!
//! Their windows, filters and cosines are constants, computed here in double precision; what is left are operations that
//! both engines have.

use super::custom::{number, options};
use super::movement::elements;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::flexbuffer::Map;
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};
use nnhal_ops::extension::{ExtensionOperation as E, TENSOR_COMPLEX64};
use std::f64::consts::PI;

/// The longest window: as for every count here, what is computed of it is limited by the file's allowance too.
const MOST_IN_A_WINDOW: u32 = 1 << 20;

/// Magnitudes below it are raised to it before their logarithm is taken.
const LEAST_MAGNITUDE: f32 = 1e-12;

impl GraphImporter<'_, '_> {
    /// Samples `[samples, channels]` become `[channels, windows, frequencies]`: windows at the distance of the stride, weighted
    /// by a periodic Hann window, filled with zeros to a power of 2; of their Fourier transforms the absolute values, or
    /// the squares of these.
    pub(super) fn audio_spectrogram(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options(operator)?;
        let window = count(&options, "window_size", 2..=MOST_IN_A_WINDOW)?;
        let stride = count(&options, "stride", 1..=u32::MAX)?;
        let is_squared = number(&options, "magnitude_squared")? != 0.0;
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        self.expect_float32(input)?;
        let [samples, channels] = *self.shape(input)? else {
            return Err(Reason::new("its input is not samples of channels"));
        };
        let transformed = window.next_power_of_two();
        let frequencies = transformed / 2 + 1;
        let Some(behind) = samples.checked_sub(window) else {
            let shape = [channels, 0, frequencies];
            let empty = self.without_elements(OperandSpec::tensor_float32(shape), &shape)?;
            self.set(output, empty);
            return Ok(());
        };
        let rows = behind / stride + 1;

        let by_channel = OperandSpec::tensor_float32([channels, samples]);
        let given = self.operand(input)?;
        let sound = match channels {
            1 => self.reshape(given, by_channel)?,
            _ => {
                let order = self.integer_vector(&[1, 0]);
                self.builder.operation(O::Transpose, [given, order], by_channel)
            }
        };
        let in_windows = elements(&[rows, window])?;
        self.file.allow((in_windows as usize).saturating_mul(size_of::<i32>()))?;
        let places = (0..rows).flat_map(|row| (0..window).map(move |at| row * stride + at));
        // They are below the number of samples, which 31 bits hold.
        let places: Vec<i32> =
            places.map(|place| i32::try_from(place).unwrap_or(i32::MAX)).collect();
        let places = self.integer_vector(&places);
        let axis = self.builder.scalar_i32(1);
        let gathered = OperandSpec::tensor_float32([channels, in_windows]);
        let gathered = self.builder.operation(O::Gather, [sound, axis, places], gathered);
        let all = elements(&[channels, rows])?;
        let windows = OperandSpec::tensor_float32([all, 1, window]);
        let gathered = self.reshape(gathered, windows.clone())?;
        let hann = |at: u32| 0.5 - 0.5 * (2.0 * PI * f64::from(at) / f64::from(window)).cos();
        let hann = self.floats(&[window], (0..window).map(hann));
        let none = self.builder.scalar_i32(0);
        let weighted = self.builder.operation(O::Mul, [gathered, hann, none], windows);

        let lengths = [1, i32::try_from(transformed).unwrap_or(i32::MAX)];
        let lengths = self.integer_vector(&lengths);
        let complex = OperandSpec::new(TENSOR_COMPLEX64, [all, 1, frequencies]);
        let complex = self.builder.extended(E::Rfft2d, [weighted, lengths], complex);
        let magnitudes = OperandSpec::tensor_float32([all, 1, frequencies]);
        let mut result = self.builder.extended(E::ComplexAbs, [complex], magnitudes.clone());
        if is_squared {
            result = self.builder.operation(O::Mul, [result, result, none], magnitudes);
        }
        let spec = OperandSpec::tensor_float32([channels, rows, frequencies]);
        let result = self.reshape(result, spec)?;
        self.emit_float32(result, output)
    }

    /// Squared magnitudes `[channels, windows, frequencies]` become `[channels, windows, coefficients]`: the cosine
    /// transform of the logarithms of what triangular filters, evenly spaced by the mel scale, let through.
    pub(super) fn mfcc(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options(operator)?;
        let limits = ["lower_frequency_limit", "upper_frequency_limit"];
        // LiteRT reads them as integers.
        let [lower, upper] = limits.map(|name| number(&options, name).map(f64::trunc));
        let filters = count(&options, "filterbank_channel_count", 1..=u32::MAX)?;
        let coefficients = count(&options, "dct_coefficient_count", 1..=filters)?;
        let rate = self.constant_integer(operator, 1)?;
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        self.expect_float32(input)?;
        let [channels, windows, frequencies] = *self.shape(input)? else {
            return Err(Reason::new("its input has not three axes"));
        };
        let weights = elements(&[filters, frequencies])?;
        self.file.allow((weights as usize).saturating_mul(size_of::<f64>()))?;
        let filterbank = Filterbank::new(frequencies, rate, filters, [lower?, upper?])?;

        let squares = self.operand(input)?;
        let rows = elements(&[channels, windows])?;
        let squares = self.reshape(squares, OperandSpec::tensor_float32([rows, frequencies]))?;
        let of_input = OperandSpec::tensor_float32([rows, frequencies]);
        let magnitudes = self.builder.operation(O::Sqrt, [squares], of_input);
        let weights = self.floats(&[filters, frequencies], filterbank.weights());
        let let_through = self.product(magnitudes, weights, [rows, filters]);
        let least = OperandSpec::tensor_float32([1]);
        let least = self.builder.constant(least, &[LEAST_MAGNITUDE]);
        let spec = self.builder.spec(let_through);
        let raised = self.builder.operation(O::Maximum, [let_through, least], spec.clone());
        let logarithms = self.builder.operation(O::Log, [raised], spec);
        let cosines = elements(&[coefficients, filters])?;
        self.file.allow((cosines as usize).saturating_mul(size_of::<f32>()))?;
        let cosine = |at: u32| {
            let (coefficient, filter) = (f64::from(at / filters), f64::from(at % filters));
            let count = f64::from(filters);
            (2.0 / count).sqrt() * (coefficient * PI / count * (filter + 0.5)).cos()
        };
        // LiteRT gives zeros where a filter would need frequencies that the spectrum does not have.
        let factor = if filterbank.is_complete() { 1.0 } else { 0.0 };
        let cosines =
            self.floats(&[coefficients, filters], (0..cosines).map(|at| factor * cosine(at)));
        let transformed = self.product(logarithms, cosines, [rows, coefficients]);
        let spec = OperandSpec::tensor_float32([channels, windows, coefficients]);
        let transformed = self.reshape(transformed, spec)?;
        self.emit_float32(transformed, output)
    }

    /// Rows times the rows of a matrix.
    fn product(&mut self, rows: OperandId, matrix: OperandId, shape: [u32; 2]) -> OperandId {
        let bias = self.floats(&shape[1..], std::iter::repeat_n(0.0, shape[1] as usize));
        let none = self.builder.scalar_i32(0);
        let spec = OperandSpec::tensor_float32(shape);
        self.builder.operation(O::FullyConnected, [rows, matrix, bias, none], spec)
    }

    #[allow(clippy::cast_possible_truncation)] // Rounded to the type of the operand.
    fn floats(&mut self, shape: &[u32], elements: impl Iterator<Item = f64>) -> OperandId {
        let elements: Vec<f32> = elements.map(|element| element as f32).collect();
        self.builder.constant(OperandSpec::tensor_float32(shape), &elements)
    }

    fn expect_float32(&self, tensor: usize) -> Imported {
        match self.element(tensor)? {
            Element::Float32 => Ok(()),
            other => Err(Reason::new(format!("its input is {other:?}, expected FLOAT32"))),
        }
    }
}

/// Filters that each let frequencies through around one of their own.
#[derive(Debug)]
struct Filterbank {
    frequencies: u32,
    /// What the distance of two frequencies is, in hertz.
    step: f64,
    /// The first and the last frequency that counts.
    range: [u32; 2],
    /// Mels from one filter's peak to the next: where the first one begins, the peaks, where the last one ends.
    edges: Vec<f64>,
}

impl Filterbank {
    fn new(frequencies: u32, rate: i32, filters: u32, [lower, upper]: [f64; 2]) -> Imported<Self> {
        if rate <= 0 {
            return Err(Reason::new(format!("its sample rate is {rate}, expected above 0")));
        }
        if frequencies < 2 {
            return Err(Reason::new("its input has one frequency, expected 2 or more"));
        }
        if !(0.0 <= lower && lower < upper) {
            let what = format!("its frequencies reach from {lower} to {upper}");
            return Err(Reason::new(format!(
                "{what}, expected 0 or more, and then more than that"
            )));
        }
        let step = 0.5 * f64::from(rate) / f64::from(frequencies - 1);
        let [first, last] = [mel(lower), mel(upper)];
        let between = (last - first) / (f64::from(filters) + 1.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // They are cut, and saturate.
        let range = [1.5 + lower / step, upper / step].map(|at| at as u32);
        let edges = (0..=filters).map(|peak| first + between * (f64::from(peak) + 1.0));
        let edges = std::iter::once(first).chain(edges).collect();
        Ok(Self { frequencies, step, range, edges })
    }

    /// Whether the spectrum has all frequencies that count.
    fn is_complete(&self) -> bool {
        self.range[1] < self.frequencies
    }

    /// By filter and frequency: what share of its magnitude the filter lets through. A frequency between two peaks is
    /// shared by their filters.
    fn weights(&self) -> impl Iterator<Item = f64> {
        let filters = self.edges.len() - 2;
        (0..filters).flat_map(move |filter| {
            (0..self.frequencies).map(move |frequency| {
                if frequency < self.range[0] || frequency > self.range[1] {
                    return 0.0;
                }
                let mel = mel(f64::from(frequency) * self.step);
                // The peak behind the frequency, from 0 on.
                let peaks = &self.edges[1..=filters];
                let behind = peaks.partition_point(|peak| *peak < mel);
                let share =
                    (self.edges[behind + 1] - mel) / (self.edges[behind + 1] - self.edges[behind]);
                match filter {
                    _ if filter == behind => 1.0 - share,
                    _ if filter + 1 == behind => share,
                    _ => 0.0,
                }
            })
        })
    }
}

/// The mel scale's number of a frequency in hertz.
fn mel(hertz: f64) -> f64 {
    1127.0 * (hertz / 700.0).ln_1p()
}

fn count(options: &Map<'_>, name: &str, range: std::ops::RangeInclusive<u32>) -> Imported<u32> {
    let found = number(options, name)?;
    let [least, most] = [*range.start(), *range.end()].map(f64::from);
    if found.fract() != 0.0 || !(least..=most).contains(&found) {
        let what = format!("its option {name:?} is {found}, expected {least} to {most}");
        return Err(Reason::new(what));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is one.
    Ok(found as u32)
}
