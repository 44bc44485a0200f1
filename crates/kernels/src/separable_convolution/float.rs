//! [`SeparableConvolution`] of float32 images.
//!
//! What is between the convolutions is often several times as large as what goes in and comes out, and too large for the caches. So it
//! is computed strip by strip, some rows of the output at a time, in memory that stays in the second cache; the rows that the next strip
//! sees as well are kept.
#![allow(unsafe_code)]

use crate::convolution::Shape;
use crate::convolution::float::Layer;
use crate::depthwise::float::{Sliding, panels};
use crate::disjoint::DisjointOutput;
use crate::gemm::float::{Blocking, Epilogue, Gemm, PackedProduct, Panels, PlainRows, RowsPlan};
use crate::image::values_needed;
use crate::image_kernel::{ImageKernel, Images};
use crate::lines::{LINE_BYTES, Line};
use crate::sharing::{TASKS_BY_THREAD, even_tasks, for_each_task};
use crate::team::{Pace, part};
use crate::{Image, ImageMut, InstructionSet, Preparation, Team, TooLarge};
use std::ops::Range;

/// A depthwise convolution and 1x1 convolutions around it, with their filters packed and their work cut into strips.
#[derive(Debug)]
pub struct SeparableConvolution {
    shapes: Shapes,
    set: InstructionSet,
    /// The strips of one image.
    strips: Vec<Strip>,
    /// Of the convolution before, by number of rows that are computed at once.
    before: Vec<(usize, Gemm)>,
    /// For the strips that have the same sizes.
    sizes: Vec<Sizes>,
    input_pixel_stride: usize,
    tasks: usize,
    /// Of scratch memory of a task: for rows of the depthwise convolution's input, and then of its output.
    values: [usize; 2],
}

/// The sizes of the convolutions that are one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shapes {
    /// The 1x1 convolution before, if there is one.
    pub before: Option<Shape>,
    /// The depthwise convolution.
    pub depthwise: Shape,
    /// The 1x1 convolution behind, if there is one.
    pub behind: Option<Shape>,
}

/// Rows of the output that are computed together.
#[derive(Debug)]
struct Strip {
    rows: Range<usize>,
    /// The rows of the depthwise convolution's input that they see.
    seen: Range<usize>,
    /// Its place among the [`Sizes`].
    sizes: usize,
}

/// The kernels of strips of certain sizes.
#[derive(Debug)]
struct Sizes {
    /// Rows that are seen, rows, and rows of padding.
    key: [usize; 3],
    depthwise: Sliding,
    behind: Option<Gemm>,
}

/// So much of a core's second cache is for a strip.
const STRIP_BYTES: usize = 512 << 10;

/// What is between the convolutions is fewer bytes than this by thread: then it stays in the caches without strips.
const LEAST_BYTES: usize = 2 << 20;

/// Unless threads share the work, which wait for each other once for all convolutions then. With more weights than this
/// that does not pay: each thread reads all of them.
const MOST_WEIGHTS: usize = 96 << 10;

/// Strips of fewer rows compute too little of what they read; of more, strips are too few.
const STRIP_ROWS: Range<usize> = 2..29;

/// One row in this many may be computed twice so that there is a task for each thread, and so that there are several.
const MOST_TWICE: [usize; 2] = [12, 32];

/// Convolutions of fewer channels have other kernels.
const LEAST_CHANNELS: usize = 8;

impl Shapes {
    /// Whether there is a kernel for them, and this number of threads is sooner with it than with one for each convolution.
    pub fn suit(&self, set: InstructionSet, threads: usize) -> bool {
        let between = self.between();
        let bytes = between[0].saturating_add(between[1]).saturating_mul(size_of::<f32>());
        let by_vectors = |shape: &Shape| {
            let pixels = shape.output[0] * shape.output[1];
            let sizes = [pixels, shape.input_channels, shape.output_channels];
            shape.filter_values() <= MOST_WEIGHTS
                && PackedProduct::suits_vectors(set, threads, sizes)
        };
        let layers = [&self.before, &self.behind];
        let waits_less = || threads > 1 && layers.into_iter().flatten().all(by_vectors);
        self.fit()
            && (waits_less() || bytes / threads.max(1) >= LEAST_BYTES)
            && self.depthwise.batch * self.depthwise.output[0] >= STRIP_ROWS.start * threads
            && self.most_tasks(MOST_TWICE[0]) >= threads
    }

    /// Whether there is a kernel for them.
    fn fit(&self) -> bool {
        let Self { before, depthwise, behind } = self;
        let is_product = |shape: &Shape| {
            shape.is_matrix_product()
                && shape.groups == 1
                && shape.input_channels > 0
                && shape.output_channels >= LEAST_CHANNELS
        };
        let fits_before = before.is_none_or(|shape| {
            let output = (shape.batch, shape.output, shape.output_channels);
            is_product(&shape)
                && output == (depthwise.batch, depthwise.input, depthwise.input_channels)
        });
        let fits_behind = behind.is_none_or(|shape| {
            let input = (shape.batch, shape.input, shape.input_channels);
            is_product(&shape)
                && input == (depthwise.batch, depthwise.output, depthwise.output_channels)
        });
        let [filter, stride, padding] =
            [depthwise.filter[0], depthwise.stride[0], depthwise.padding_before[0]];
        // So that each row of the output sees one of the input.
        let last = depthwise.output[0].saturating_sub(1) * stride;
        let sees_all = padding < filter && last < depthwise.input[0] + padding;
        (before.is_some() || behind.is_some())
            && fits_before
            && fits_behind
            && depthwise.is_valid()
            && depthwise.dilation == [1; 2]
            && Sliding::suits(depthwise)
            && sees_all
    }

    /// Into how many tasks the work may be cut so that one row of `one_in` is computed twice: where the rows of one task meet those of
    /// another, both compute what both see.
    fn most_tasks(&self, one_in: usize) -> usize {
        let Shape { batch, input, filter, stride, .. } = self.depthwise;
        let twice = match self.before {
            Some(_) => filter[0].saturating_sub(stride[0]),
            None => 0,
        };
        let rows = batch.saturating_mul(input[0]) / one_in;
        rows.checked_div(twice).map_or(usize::MAX, |most| most + 1)
    }

    /// Values that are between the convolutions: before the depthwise one, and behind it.
    fn between(&self) -> [usize; 2] {
        let [before, behind] = self.row_values();
        let rows = |row: usize, height: usize| {
            row.saturating_mul(height).saturating_mul(self.depthwise.batch)
        };
        [rows(before, self.depthwise.input[0]), rows(behind, self.depthwise.output[0])]
    }

    /// The same of a row.
    fn row_values(&self) -> [usize; 2] {
        let Self { before, depthwise, behind } = self;
        let row = |exists: bool, width: usize| {
            if exists { width.saturating_mul(depthwise.output_channels) } else { 0 }
        };
        [row(before.is_some(), depthwise.input[1]), row(behind.is_some(), depthwise.output[1])]
    }

    /// How many rows a strip is to have.
    fn strip_rows(&self) -> usize {
        let [before, behind] = self.row_values();
        let [filter, stride] = [self.depthwise.filter[0], self.depthwise.stride[0]];
        let bytes = |rows: usize| {
            let seen = (rows - 1) * stride + filter;
            let values = seen.saturating_mul(before).saturating_add(rows.saturating_mul(behind));
            values.saturating_mul(size_of::<f32>())
        };
        let fits = |rows: &usize| bytes(*rows) <= STRIP_BYTES;
        STRIP_ROWS.rev().find(fits).unwrap_or(STRIP_ROWS.start)
    }

    /// Rows of the depthwise convolution's input that rows of the output see, and how many rows of padding are before them.
    fn seen(&self, rows: &Range<usize>) -> (Range<usize>, usize) {
        let Shape { filter, stride, padding_before, input, .. } = self.depthwise;
        let start = rows.start * stride[0];
        let end = (rows.end - 1) * stride[0] + filter[0];
        let padding = padding_before[0].saturating_sub(start);
        let position = |row: usize| row.saturating_sub(padding_before[0]).min(input[0]);
        (position(start)..position(end), padding)
    }

    fn all(&self) -> impl Iterator<Item = &Shape> {
        self.before.iter().chain([&self.depthwise]).chain(&self.behind)
    }

    /// Channels of the image that is written.
    fn output_channels(&self) -> usize {
        self.behind.map_or(self.depthwise.output_channels, |shape| shape.output_channels)
    }
}

impl SeparableConvolution {
    /// Packs the filters of the convolutions that there are, and cuts the work. The input's pixels will be
    /// `input_pixel_stride` values from one to the next.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If there is no kernel for the [shapes](Shapes::suit), there are no layers for them, or filters or biases are not as large as they say.
    pub fn prepare(
        shapes: &Shapes,
        input_pixel_stride: usize,
        layers: [Option<Layer<'_>>; 3],
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        Self::in_strips(shapes.strip_rows(), shapes, input_pixel_stride, layers, preparation)
    }

    /// In strips of this many rows at most.
    pub(super) fn in_strips(
        rows: usize,
        shapes: &Shapes,
        input_pixel_stride: usize,
        [before, depthwise, behind]: [Option<Layer<'_>>; 3],
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let (set, threads) = (preparation.set(), preparation.threads());
        assert!(shapes.fit(), "no separable convolution: {shapes:?}");
        let mut product = |shape: &Option<Shape>, layer: Option<Layer<'_>>| {
            let Some(shape) = shape else { return Ok(None) };
            let layer = layer.expect("a layer for each shape");
            layer.check(shape.filter_values(), shape.output_channels, preparation);
            let Layer { filter, bias, epilogue } = layer;
            let blocking = Blocking::for_columns(set, shape.output_channels);
            let columns = [1, shape.output_channels];
            let bias = |n: usize| bias[n];
            let depth = shape.input_channels;
            let panels = Panels::pack_columns(preparation, blocking, depth, columns, bias, filter)?;
            Ok(Some((panels, epilogue)))
        };
        let before = product(&shapes.before, before)?;
        let behind = product(&shapes.behind, behind)?;
        let shape = &shapes.depthwise;
        let channels = shape.output_channels;
        let layer = depthwise.expect("a depthwise convolution");
        layer.check(shape.filter_values(), channels, preparation);
        let epilogue = layer.epilogue;
        let panels = panels(shape, layer, Sliding::blocking(set), preparation)?;
        let gemm = |pixels: usize, stride: usize, (panels, epilogue): &(Panels, Epilogue)| {
            let bytes = values_needed(pixels, panels.depth(), stride) * size_of::<f32>();
            let row_bytes = stride * size_of::<f32>();
            let rows =
                RowsPlan { count: pixels, line: pixels, bytes, row_bytes, scratch_values: 0 };
            Gemm::new(set, 1, rows, panels.clone(), *epilogue)
        };

        let height = shape.output[0];
        let parts = height.div_ceil(rows).next_multiple_of(threads).min(height);
        let several = even_tasks(shapes.most_tasks(MOST_TWICE[1]), threads, TASKS_BY_THREAD);
        let tasks = several.max(threads).min(shape.batch * parts).max(1);
        let mut this = Self {
            shapes: *shapes,
            set,
            strips: preparation.room(parts, "strips of rows")?,
            before: Vec::new(),
            sizes: Vec::new(),
            input_pixel_stride,
            tasks,
            values: [0; 2],
        };
        let row_values = shapes.row_values();
        let pixel_stride = if before.is_some() { channels } else { input_pixel_stride };
        for rows in (0..parts).map(|index| part(height, parts, index)) {
            let (seen, padding) = shapes.seen(&rows);
            // The first strip of a task computes all that it sees, others what the one before has not.
            let end = this.strips.last().map_or(0, |last: &Strip| last.seen.end);
            let fresh = seen.end - end.clamp(seen.start, seen.end);
            for count in [seen.len(), fresh] {
                let is_known = this.before.iter().any(|(known, _)| *known == count);
                if let (Some(layer), false) = (&before, is_known || count == 0) {
                    let pixels = count * shape.input[1];
                    this.before.push((count, gemm(pixels, input_pixel_stride, layer)));
                }
            }
            let key = [seen.len(), rows.len(), padding];
            let sizes = match this.sizes.iter().position(|it| it.key == key) {
                Some(sizes) => sizes,
                None => {
                    let shape = Shape {
                        batch: 1,
                        input: [seen.len(), shape.input[1]],
                        output: [rows.len(), shape.output[1]],
                        padding_before: [padding, shape.padding_before[1]],
                        ..*shape
                    };
                    let panels = panels.clone();
                    let depthwise =
                        Sliding::new(&shape, pixel_stride, panels, epilogue, 1, preparation)?;
                    let pixels = shape.output_pixels();
                    let behind = behind.as_ref().map(|layer| gemm(pixels, channels, layer));
                    this.sizes.push(Sizes { key, depthwise, behind });
                    this.sizes.len() - 1
                }
            };
            for (values, rows) in [(0, seen.len()), (1, rows.len())] {
                let wanted =
                    (rows * row_values[values]).next_multiple_of(LINE_BYTES / size_of::<f32>());
                this.values[values] = this.values[values].max(wanted);
            }
            this.strips.push(Strip { rows, seen, sizes });
        }
        preparation.check_scratch::<f32>(&[tasks, this.values[0] + this.values[1]])?;
        Ok(this)
    }
}

/// A convolution that is being computed.
struct Pass<'a> {
    kernel: &'a SeparableConvolution,
    input: Image<'a, f32>,
    residual: Option<Image<'a, f32>>,
    output: DisjointOutput<'a, f32>,
    /// Of the output.
    pixel_stride: usize,
}

impl Pass<'_> {
    /// Computes a strip of an image, of which `seen` has these rows of the depthwise convolution's input from the strip before.
    fn strip(
        &self,
        image: usize,
        strip: &Strip,
        left: &Range<usize>,
        [seen, between]: [&mut [f32]; 2],
        pace: &mut Pace<'_>,
    ) {
        let SeparableConvolution { shapes, before, sizes, .. } = self.kernel;
        let shape = &shapes.depthwise;
        let Sizes { depthwise, behind, .. } = &sizes[strip.sizes];
        let of_input = |rows: &Range<usize>| {
            let pixels = (image * shape.input[0] + rows.start) * shape.input[1];
            &self.input.values[pixels * self.input.pixel_stride..]
        };
        let image_seen = match shapes.before {
            None => Image { values: of_input(&strip.seen), pixel_stride: self.input.pixel_stride },
            Some(of_product) => {
                let row = shape.input[1] * shape.input_channels;
                let kept = left.end.clamp(strip.seen.start, strip.seen.end) - strip.seen.start;
                if kept > 0 {
                    let first = (strip.seen.start - left.start) * row;
                    seen.copy_within(first..first + kept * row, 0);
                }
                let fresh = strip.seen.start + kept..strip.seen.end;
                let gemm = before.iter().find(|(count, _)| *count == fresh.len());
                if let Some((_, gemm)) = gemm {
                    let sizes = [fresh.len() * shape.input[1], 1, of_product.input_channels];
                    let rows = PlainRows::new(of_input(&fresh), sizes, self.input.pixel_stride);
                    let values = &mut seen[kept * row..][..fresh.len() * row];
                    let output = ImageMut::contiguous(values, shape.input_channels);
                    gemm.run_in_task(pace.stop(), &rows, None, output);
                }
                Image::contiguous(&*seen, shape.input_channels)
            }
        };
        let pixel = (image * shape.output[0] + strip.rows.start) * shape.output[1];
        let pixels = strip.rows.len() * shape.output[1];
        let length = values_needed(pixels, shapes.output_channels(), self.pixel_stride);
        // SAFETY: rows of one strip of one image, which no one else writes.
        let values = unsafe { self.output.slice(pixel * self.pixel_stride, length) };
        let output = ImageMut { values, pixel_stride: self.pixel_stride };
        let Some(gemm) = behind else {
            depthwise.run_in_task(pace, Images::new(image_seen, output));
            return;
        };
        let channels = shape.output_channels;
        let between = &mut between[..pixels * channels];
        let to = ImageMut::contiguous(&mut *between, channels);
        depthwise.run_in_task(pace, Images::new(image_seen, to));
        let rows = PlainRows::new(between, [pixels, 1, channels], channels);
        let residual = self.residual.map(|residual| Image {
            values: &residual.values[pixel * residual.pixel_stride..],
            pixel_stride: residual.pixel_stride,
        });
        gemm.run_in_task(pace.stop(), &rows, residual, output);
    }
}

/// Inputs: the image, and the residual operand if there is one. It is added before the epilogue of the convolution behind the
/// depthwise one, without which there cannot be any.
impl ImageKernel for SeparableConvolution {
    type Element = f32;
    const RESIDUAL: Option<usize> = Some(1);

    fn name(&self) -> String {
        let filter = |shape: &Shape| format!("{}x{}", shape.filter[0], shape.filter[1]);
        let filters: Vec<_> = self.shapes.all().map(filter).collect();
        format!("separable conv2d {} strips f32 {}", filters.join("+"), self.set)
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let Images { input, residual, output, .. } = images;
        let shape = &self.shapes.depthwise;
        assert_eq!(input.pixel_stride, self.input_pixel_stride, "values from pixel to pixel");
        assert!(residual.is_none() || self.shapes.behind.is_some(), "nothing to add it to");
        let by_task = self.values[0] + self.values[1];
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
        let (values, pixel_stride) = (DisjointOutput::new(output.values), output.pixel_stride);
        let pass = Pass { kernel: self, input, residual, output: values, pixel_stride };
        let strips = shape.batch * self.strips.len();
        let work = usize::try_from(self.arithmetic() / 2).unwrap_or(usize::MAX) / strips.max(1);
        for_each_task(team, self.tasks, (scratch, by_task), |task, scratch, stop| {
            let mut pace = Pace::new(stop);
            let (seen, between) = scratch.split_at_mut(self.values[0]);
            // The image and the rows of the depthwise convolution's input that the strip before has left.
            let mut left = (0, 0..0);
            for index in part(strips, self.tasks, task) {
                if pace.is_over(work) {
                    return;
                }
                let (image, strip) = (index / self.strips.len(), index % self.strips.len());
                let strip = &self.strips[strip];
                if left.0 != image {
                    left = (image, 0..0);
                }
                pass.strip(image, strip, &left.1, [&mut *seen, &mut *between], &mut pace);
                left.1 = strip.seen.clone();
            }
        });
    }

    fn scratch_bytes(&self) -> usize {
        self.tasks * (self.values[0] + self.values[1]) * size_of::<f32>()
    }

    fn arithmetic(&self) -> u64 {
        self.shapes.all().map(Shape::operations).sum()
    }
}
