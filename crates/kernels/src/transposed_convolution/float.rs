//! [`TransposedConvolution`] of float32 images.
#![allow(unsafe_code)]

use super::shape::{Phase, Shape, tasks_by_place};
use crate::convolution::float::Layer;
use crate::convolution::float::taps::{Access, Taps};
use crate::disjoint::DisjointOutput;
use crate::gemm::float::{Blocking, Gemm, Panels, RowsPlan};
use crate::image::Places;
use crate::image_kernel::{ImageKernel, Images};
use crate::sharing::for_each_task;
use crate::{InstructionSet, Line, Preparation, Team, TooLarge};

/// A transposed convolution with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub struct TransposedConvolution {
    shape: Shape,
    set: InstructionSet,
    output_pixel_stride: usize,
    phases: Vec<Packed>,
    /// Each a task of a phase.
    tasks: Vec<(usize, usize)>,
    zeros: Vec<f32>,
}

#[derive(Debug)]
struct Packed {
    phase: Phase,
    gemm: Gemm,
    access: Access,
}

impl TransposedConvolution {
    /// Packs the filter, `[output_channels, filter height, filter width, input_channels]`, and the
    /// bias, one for each output channel, and cuts the work. The pixels of input and output will be
    /// this many values from one to the next.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not [valid](Shape::is_valid), the filter or the bias is not as large as it
    /// says, or output pixels are closer than their channels.
    pub fn prepare(
        shape: &Shape,
        [input_pixel_stride, output_pixel_stride]: [usize; 2],
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let phases = shape.checked_phases(output_pixel_stride);
        layer.check(shape.filter_values(), shape.output_channels, preparation);
        let Layer { filter, bias, epilogue } = layer;
        let (set, threads) = (preparation.set(), preparation.threads());
        let blocking = Blocking::of(set);
        let pack = |phase: Phase| {
            let of_phase = &phase.shape;
            let filter = match preparation.is_restoring() {
                true => Vec::new(),
                false => phase.filter(shape, filter, 0.0, &mut preparation.pace())?,
            };
            let depth = of_phase.taps() * shape.input_channels;
            let columns = [1, of_phase.output_channels];
            let bias = |column: usize| bias[column % shape.output_channels];
            let panels =
                Panels::pack_columns(preparation, blocking, depth, columns, bias, &filter)?;
            let access = Access::of(of_phase, input_pixel_stride == shape.input_channels);
            let plan = access.plan(of_phase, input_pixel_stride, blocking.rows)?;
            let rows = RowsPlan { line: of_phase.output[1], ..plan };
            let gemm = Gemm::new(set, threads, rows, panels, epilogue);
            Ok(Packed { phase, gemm, access })
        };
        let phases = phases.into_iter().map(pack).collect::<Result<Vec<_>, TooLarge>>()?;
        let mut zeros = 0;
        for Packed { phase, access, .. } in &phases {
            zeros = zeros.max(access.zeros_needed(&phase.shape)?);
        }
        let prepared = Self {
            shape: *shape,
            set,
            output_pixel_stride,
            tasks: tasks_by_place(phases.iter().map(|it| it.gemm.tasks())),
            zeros: preparation.filled(0.0, zeros, "zeros")?,
            phases,
        };
        let scratch = [prepared.tasks.len(), prepared.task_scratch_values()];
        preparation.check_scratch::<f32>(&scratch)?;
        Ok(prepared)
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        format!("gemm by phases f32 {}", self.set)
    }

    fn task_scratch_values(&self) -> usize {
        self.phases.iter().map(|it| it.gemm.task_scratch_values()).max().unwrap_or(0)
    }
}

/// Input: the image.
impl ImageKernel for TransposedConvolution {
    type Element = f32;

    fn name(&self) -> String {
        format!("{} {}", self.shape.name(), self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let Images { input, output, .. } = images;
        assert_eq!(output.pixel_stride, self.output_pixel_stride, "distance of output pixels");
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
        assert!(size_of_val(scratch) >= self.scratch_bytes(), "too little scratch memory");
        let output = DisjointOutput::new(output.values);
        let scratch = (scratch, self.task_scratch_values());
        for_each_task(team, self.tasks.len(), scratch, |task, scratch, stop| {
            let (phase, task) = self.tasks[task];
            let Packed { phase: Phase { shape, placement, .. }, gemm, access } =
                &self.phases[phase];
            let rows = Taps::new(shape, *access, input, &self.zeros);
            // SAFETY: each phase has output pixels of its own, which do not overlap, as
            // `checked_phases` has seen for the distance that was compared above.
            let product = unsafe {
                let panels = gemm.panels().all_values();
                gemm.product(&rows, panels, None, &output, Places::Lines(*placement))
            };
            if let Some(product) = product {
                // SAFETY: each task is there once.
                unsafe { product.task(task, scratch, stop) };
            }
        });
    }

    fn scratch_bytes(&self) -> usize {
        self.tasks.len() * self.task_scratch_values() * size_of::<f32>()
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}
