//! [`RoiAlign`].
#![allow(unsafe_code)]

use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::preparation::product;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};

/// Prepared ROI_ALIGN of float32 images `[batch, height, width, channels]`, none of whose last three
/// lengths is 0: regions, each brought to one size by averages of points that are interpolated. Inputs: images, regions,
/// and the image of each region.
#[derive(Debug, Clone)]
pub struct RoiAlign {
    /// Of the vectors of channels.
    pub set: InstructionSet,
    /// Batch, height, width, channels.
    pub sizes: [usize; 4],
    /// Into how many bins a region is divided down and across; above 0.
    pub bins: [usize; 2],
    /// Points of a bin down and across; 0 stands for the bin's size in cells, rounded up.
    pub samples: [u32; 2],
    /// What coordinates are divided by, down and across; above 0.
    pub strides: [f32; 2],
    /// By how much, relative to it, a region may end behind the image.
    pub rounding: f64,
    /// How many threads may take part.
    pub threads: usize,
}

/// A region in cells; pairs are in the order down, across.
#[derive(Debug, Clone, Copy)]
struct Region {
    batch: usize,
    start: [f64; 2],
    extent: [f64; 2],
}

/// How much cells along one axis count in the average of a bin: from which cell on, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cells {
    first: usize,
    count: usize,
}

impl RoiAlign {
    /// Weights of cells that a thread shall keep at most.
    pub const MOST_WEIGHTS: u64 = 1 << 20;

    /// Words of 32 bits that each thread needs: weights of the rows of a bin, and of the columns of all
    /// bins with where they begin and end.
    fn words_of_thread(&self) -> usize {
        let [_, height, width, _] = self.sizes;
        self.bins[1].saturating_mul(width.saturating_add(2)).saturating_add(height)
    }

    /// Words of 32 bits that running needs.
    pub fn scratch_words(&self) -> usize {
        self.threads.max(1).saturating_mul(self.words_of_thread())
    }

    /// Regions `[count, 4]`, each left, upper, right and lower edge, of the images with these numbers.
    ///
    /// # Errors
    /// A region is not within its image, its edges are not in order, or there is no such image; nothing
    /// is written then.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for, or there is too little scratch memory.
    pub fn run(
        &self,
        team: &mut Team,
        images: &[f32],
        (regions, batch_indexes): (&[f32], &[i32]),
        output: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<(), WrongValue> {
        let [batch, height, width, channels] = self.sizes;
        let (regions, _) = regions.as_chunks::<4>();
        assert_eq!(Some(images.len()), product(&[batch, height, width, channels]), "other images");
        assert_eq!(regions.len(), batch_indexes.len(), "an image for each region");
        let of_region =
            product(&[self.bins[0], self.bins[1], channels]).expect("bins beyond memory");
        assert_eq!(
            Some(output.len()),
            product(&[regions.len(), of_region]),
            "an output of another size"
        );
        for (edges, index) in regions.iter().zip(batch_indexes) {
            self.region(*edges, *index).ok_or_else(|| WrongValue {
                input: 1,
                what: "value",
                found: format!("{edges:?} of image {index}"),
                expected: "a region of an image that there is, with its edges in order".to_owned(),
            })?;
        }
        if output.is_empty() {
            return Ok(());
        }
        let words = self.words_of_thread();
        let tasks = self.threads.max(1).min(regions.len());
        let isa = Isa::of(self.set);
        let scratch = DisjointOutput::new(&mut scratch[..tasks * words]);
        let output = DisjointOutput::new(output);
        team.run_long(tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            // SAFETY: every task has its own room.
            let room = unsafe { scratch.slice(task * words, words) };
            for number in (0..regions.len()).skip(task).step_by(tasks) {
                let region = self.region(regions[number], batch_indexes[number]);
                let Some(region) = region else { continue };
                // SAFETY: every region has its own output, and is one task's.
                let output = unsafe { output.slice(number * of_region, of_region) };
                self.pool(isa, region, images, output, room, &mut pace);
            }
        });
        Ok(())
    }

    /// A region, if it is within an image.
    #[allow(clippy::cast_precision_loss)] // Lengths are far below 2^53.
    fn region(&self, [x1, y1, x2, y2]: [f32; 4], index: i32) -> Option<Region> {
        let [batches, height, width, _] = self.sizes;
        let batch = usize::try_from(index).ok().filter(|batch| *batch < batches)?;
        let strides = self.strides.map(f64::from);
        let in_cells = |[y, x]: [f64; 2]| [y / strides[0], x / strides[1]];
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(f64::from);
        let (start, end) = (in_cells([y1, x1]), in_cells([y2, x2]));
        let limits = [height, width].map(|length| length as f64 * (1.0 + self.rounding));
        let is_within = x1 <= x2
            && y1 <= y2
            && start.iter().all(|start| *start >= 0.0)
            && end.iter().zip(limits).all(|(end, limit)| *end <= limit);
        is_within.then(|| Region { batch, start, extent: in_cells([y2 - y1, x2 - x1]) })
    }

    fn pool(
        &self,
        isa: Isa,
        region: Region,
        images: &[f32],
        output: &mut [f32],
        room: &mut [f32],
        pace: &mut Pace<'_>,
    ) {
        let [_, height, width, channels] = self.sizes;
        let image =
            &images[region.batch * height * width * channels..][..height * width * channels];
        let [down, across] = self.bins;
        let (of_rows, rest) = room.split_at_mut(height);
        let (of_columns, places) = rest.split_at_mut(across * width);
        let (places, _) = bytemuck::cast_slice_mut::<f32, u32>(places).as_chunks_mut::<2>();
        let narrow = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        for (bin, (weights, place)) in
            of_columns.chunks_exact_mut(width).zip(&mut *places).enumerate()
        {
            if pace.is_over(OF_CELL * width) {
                return;
            }
            let cells = self.cells(&region, 1, bin, weights);
            *place = [narrow(cells.first), narrow(cells.count)];
        }
        for (bin, row) in output.chunks_exact_mut(across * channels).take(down).enumerate() {
            if pace.is_over(OF_CELL * height) {
                return;
            }
            let rows = self.cells(&region, 0, bin, of_rows);
            let columns = of_columns.chunks_exact(width).zip(&*places);
            for (output, (weights, [first, count])) in row.chunks_exact_mut(channels).zip(columns) {
                if pace.is_over(rows.count * *count as usize * channels) {
                    return;
                }
                isa.run(Bin {
                    image: &image[rows.first * width * channels..],
                    row_stride: width * channels,
                    rows: &of_rows[..rows.count],
                    first_column: *first as usize,
                    columns: &weights[..*count as usize],
                    output,
                    pace,
                });
            }
        }
    }

    /// Writes the weights of the cells along an axis that a bin touches, which are 1 together.
    ///
    /// Interpolation is linear along each axis, so the average over a bin's grid of points is one of rows
    /// by one of columns, and points between the same two cells count as much as the same number in their middle.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn cells(&self, region: &Region, axis: usize, bin: usize, weights: &mut [f32]) -> Cells {
        let size = region.extent[axis].max(1.0) / self.bins[axis] as f64;
        let samples = match self.samples[axis] {
            0 => size.ceil(),
            samples => f64::from(samples),
        };
        let start = region.start[axis] + bin as f64 * size;
        let distance = size / samples;
        let points_before = |at: f64| ((at - start) / distance - 0.5).ceil().clamp(0.0, samples);
        let last = weights.len() - 1;
        let first = (start as usize).min(last);
        weights[0] = 0.0;
        for cell in first..last {
            let (from, to) = (points_before(cell as f64), points_before((cell + 1) as f64));
            let middle = start + f64::midpoint(from, to) * distance - cell as f64;
            let fraction = if from == to { 0.0 } else { middle.clamp(0.0, 1.0) };
            let share = (to - from) / samples;
            weights[cell - first] += (share * (1.0 - fraction)) as f32;
            weights[cell - first + 1] = (share * fraction) as f32;
            if to == samples {
                return Cells { first, count: cell - first + 2 };
            }
        }
        weights[last - first] += ((samples - points_before(last as f64)) / samples) as f32;
        Cells { first, count: last - first + 1 }
    }
}

impl PreparedKernel for RoiAlign {
    fn name(&self) -> String {
        "roi align f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let (output, scratch) =
            (bytemuck::cast_slice_mut(output), bytemuck::cast_slice_mut(scratch));
        self.run(team, inputs.of(0), (inputs.of(1), inputs.of(2)), output, scratch)
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_words().saturating_mul(size_of::<f32>())
    }
}

/// Multiplications that take about as long as a cell's weight.
const OF_CELL: usize = 16;

/// The average of one bin.
struct Bin<'a, 'p> {
    /// From the first row on.
    image: &'a [f32],
    row_stride: usize,
    rows: &'a [f32],
    first_column: usize,
    columns: &'a [f32],
    output: &'a mut [f32],
    pace: &'a mut Pace<'p>,
}

impl Kernel for Bin<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let channels = self.output.len();
        let wide = 4 * S::LANES;
        let mut first = 0;
        while first < channels {
            if channels - first >= wide {
                let sums = self.sums::<S, 4>(simd, first, wide);
                for (index, sum) in sums.into_iter().enumerate() {
                    simd.store(sum, &mut self.output[first + index * S::LANES..]);
                }
                first += wide;
            } else {
                let count = (channels - first).min(S::LANES);
                let [sum] = self.sums::<S, 1>(simd, first, count);
                simd.store_partial(sum, &mut self.output[first..first + count]);
                first += count;
            }
        }
    }
}

impl Bin<'_, '_> {
    /// `count` channels from `first` on, as `N` vectors.
    #[inline(always)]
    fn sums<S: Simd, const N: usize>(&mut self, simd: S, first: usize, count: usize) -> [S::F; N] {
        let channels = self.output.len();
        let mut sums = [simd.splat(0.0); N];
        for (row, of_row) in self.rows.iter().enumerate() {
            if self.pace.is_over(self.columns.len() * count) {
                break;
            }
            let mut at = row * self.row_stride + self.first_column * channels + first;
            for of_column in self.columns {
                let weight = simd.splat(of_row * of_column);
                let cell = &self.image[at..at + count];
                for (index, sum) in sums.iter_mut().enumerate() {
                    let value = if N == 1 {
                        simd.load_partial(cell, 0.0)
                    } else {
                        simd.load(&cell[index * S::LANES..])
                    };
                    *sum = simd.fma(weight, value, *sum);
                }
                at += channels;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The average of a bin, point by point.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn expected(
        kernel: &RoiAlign,
        image: &[f32],
        edges: [f32; 4],
        bin: [usize; 2],
        channel: usize,
    ) -> f64 {
        let [_, height, width, channels] = kernel.sizes;
        let [x1, y1, x2, y2] = edges.map(f64::from);
        let strides = kernel.strides.map(f64::from);
        let points = |axis: usize, start: f64, end: f64| -> Vec<f64> {
            let size = ((end - start) / strides[axis]).max(1.0) / kernel.bins[axis] as f64;
            let count = match kernel.samples[axis] {
                0 => size.ceil(),
                count => f64::from(count),
            };
            let start = start / strides[axis] + bin[axis] as f64 * size;
            (0..count as usize).map(|it| start + (it as f64 + 0.5) * size / count).collect()
        };
        let (rows, columns) = (points(0, y1, y2), points(1, x1, x2));
        let at = |y: usize, x: usize| f64::from(image[(y * width + x) * channels + channel]);
        let mut sum = 0.0;
        for (y, x) in rows.iter().flat_map(|y| columns.iter().map(move |x| (*y, *x))) {
            let (y, x) = (y.min((height - 1) as f64), x.min((width - 1) as f64));
            let (low_y, low_x) = (y as usize, x as usize);
            let (high_y, high_x) = ((low_y + 1).min(height - 1), (low_x + 1).min(width - 1));
            let (dy, dx) = (y - low_y as f64, x - low_x as f64);
            sum += (1.0 - dy) * ((1.0 - dx) * at(low_y, low_x) + dx * at(low_y, high_x))
                + dy * ((1.0 - dx) * at(high_y, low_x) + dx * at(high_y, high_x));
        }
        sum / (rows.len() * columns.len()) as f64
    }

    #[test]
    fn averages_are_those_of_their_points() {
        let mut random = fastrand::Rng::with_seed(17);
        for set in InstructionSet::available() {
            for _ in 0..30 {
                let sizes = [2, random.usize(1..9), random.usize(1..9), random.usize(1..80)];
                let kernel = RoiAlign {
                    set,
                    sizes,
                    bins: [random.usize(1..4), random.usize(1..4)],
                    samples: [random.u32(0..4), random.u32(0..4)],
                    strides: [2.0, 4.0],
                    rounding: 1e-6,
                    threads: 2,
                };
                let [_, height, width, channels] = sizes;
                let images: Vec<f32> =
                    (0..2 * height * width * channels).map(|_| random.f32()).collect();
                let mut regions = Vec::new();
                let indexes: Vec<i32> = (0..5).map(|_| random.i32(0..2)).collect();
                for _ in 0..5 {
                    #[allow(clippy::cast_precision_loss)]
                    let [y, x] = [(height, 2.0), (width, 4.0)].map(|(length, stride)| {
                        let most = length as f32 * stride;
                        let (a, b) = (random.f32() * most, random.f32() * most);
                        [a.min(b), a.max(b)]
                    });
                    regions.extend([x[0], y[0], x[1], y[1]]);
                }
                let [down, across] = kernel.bins;
                let mut output = vec![f32::NAN; 5 * down * across * channels];
                let mut scratch = vec![f32::NAN; kernel.scratch_words()];
                let given = (&regions[..], &indexes[..]);
                kernel.run(&mut Team::new(2), &images, given, &mut output, &mut scratch).unwrap();
                for (number, found) in output.iter().enumerate() {
                    let (rest, channel) = (number / channels, number % channels);
                    let (rest, x) = (rest / across, rest % across);
                    let (region, y) = (rest / down, rest % down);
                    let image =
                        usize::try_from(indexes[region]).unwrap() * height * width * channels;
                    let edges = regions[region * 4..][..4].try_into().unwrap();
                    let expected = expected(&kernel, &images[image..], edges, [y, x], channel);
                    assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} {expected}");
                }
            }
        }
    }

    #[test]
    fn regions_of_no_image_are_refused() {
        let kernel = RoiAlign {
            set: InstructionSet::Portable,
            sizes: [1, 2, 3, 1],
            bins: [1, 1],
            samples: [1, 1],
            strides: [1.0, 1.0],
            rounding: 0.0,
            threads: 1,
        };
        let run = |edges: [f32; 4], index: i32| {
            let regions = [[0.0, 0.0, 1.0, 1.0], edges].concat();
            let (images, mut scratch) = ([0.0; 6], vec![0.0; kernel.scratch_words()]);
            let given = (&regions[..], &[0, index][..]);
            kernel.run(&mut Team::alone(), &images, given, &mut [0.0; 2], &mut scratch)
        };
        assert_eq!(run([0.0, 0.0, 3.0, 2.0], 0), Ok(()));
        for (edges, index) in [
            ([0.0, 0.0, 3.1, 2.0], 0),
            ([-0.1, 0.0, 3.0, 2.0], 0),
            ([2.0, 0.0, 1.0, 2.0], 0),
            ([0.0, f32::NAN, 1.0, 2.0], 0),
            ([0.0, 0.0, 1.0, 1.0], 1),
            ([0.0, 0.0, 1.0, 1.0], -1),
        ] {
            let found = run(edges, index).unwrap_err().found;
            assert_eq!(found, format!("{edges:?} of image {index}"));
        }
    }
}
