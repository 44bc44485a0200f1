//! Running a plan.

use super::arena::StepMemory;
use super::{Location, Plan, Run, Step};
use nnhal_driver::bindings::Region;
use nnhal_driver::{
    Bindings, Budget, Charge, DeliveryError, Destination, EngineError, MemoryUse, ObservedOutput, RunContext,
};
use nnhal_kernels::elementwise::{f16_to_f32_in_place, f32_to_f16};
use nnhal_kernels::{InstructionSet, Lines, Team, for_each_slice};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Instant;

/// What one execution needs and no other one may use at the same time.
#[derive(Debug)]
pub(crate) struct Workspace {
    arena: Lines,
    _charge: Charge,
}

impl Workspace {
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(plan: &Plan) -> Result<Self, EngineError> {
        let (user, wanted) = (MemoryUse::Values, plan.arena_bytes as u64);
        let charge = plan.ledger.charge(wanted, user)?;
        let arena = Lines::try_with_bytes(plan.arena_bytes);
        let arena = arena.map_err(|_| EngineError::Allocation { user, wanted })?;
        Ok(Self { arena, _charge: charge })
    }
}

/// Where a plan's inputs come from, and where its outputs go.
pub(crate) trait Endpoints {
    /// Copies the bytes of an input, as models have them.
    fn read(&self, input: usize, bytes: &mut [u8], team: &mut Team) -> Result<(), EngineError>;

    /// Takes an output, as long as the budget lasts.
    fn deliver(
        &mut self,
        output: usize,
        dimensions: &[u32],
        bytes: OutputBytes<'_>,
        team: &mut Team,
        budget: &Budget,
    ) -> Result<(), EngineError>;
}

/// An output of a plan.
#[derive(Clone, Copy)]
pub(crate) enum OutputBytes<'run> {
    /// As models have it.
    Ready(&'run [u8]),
    /// Floats of 32 bits that models have as floats of 16 bits, and what makes those of them.
    Wide(&'run [u8], InstructionSet),
}

impl OutputBytes<'_> {
    /// Number of bytes, as models have them.
    fn length(&self) -> usize {
        match self {
            Self::Ready(bytes) => bytes.len(),
            Self::Wide(bytes, _) => bytes.len() / 2,
        }
    }

    /// A copy, as models have it.
    ///
    /// # Errors
    /// The budget is used up before, or there is no memory.
    pub(crate) fn into_vec(self, budget: &Budget) -> Result<Vec<u8>, EngineError> {
        match self {
            Self::Ready(bytes) => {
                let mut copy = reserve(bytes.len())?;
                for block in budget.blocks(bytes.len()) {
                    copy.extend_from_slice(&bytes[block?]);
                }
                Ok(copy)
            }
            Self::Wide(bytes, set) => narrowed_until(set, bytes, budget),
        }
    }
}

/// Of a request.
impl Endpoints for &Bindings {
    fn read(&self, input: usize, bytes: &mut [u8], team: &mut Team) -> Result<(), EngineError> {
        self.inputs()[input].value().map_or(Ok(()), |region| read(region, bytes, team))
    }

    fn deliver(
        &mut self,
        output: usize,
        dimensions: &[u32],
        bytes: OutputBytes<'_>,
        team: &mut Team,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        let bound = &self.outputs()[output];
        match bound.begin(dimensions, bytes.length() as u64)? {
            Destination::Region(region) => write(output, &region, bytes, team, budget),
            Destination::TooShort | Destination::NotWanted => Ok(()),
        }
    }
}

impl Plan {
    /// Computes the outputs for inputs that have the dimensions that the plan is for.
    pub(crate) fn run(
        &self,
        endpoints: impl Endpoints,
        context: &RunContext<'_>,
        workspace: &mut Workspace,
        team: &mut Team,
    ) -> Result<(), EngineError> {
        // While others wake up, the inputs are copied.
        team.begin(self.is_small);
        let is_over = || context.budget.check_inside().is_err();
        let result =
            team.until(&is_over, |team| self.run_awake(endpoints, context, workspace, team));
        team.end();
        result
    }

    fn run_awake(
        &self,
        mut endpoints: impl Endpoints,
        context: &RunContext<'_>,
        workspace: &mut Workspace,
        team: &mut Team,
    ) -> Result<(), EngineError> {
        let arena = workspace.arena.elements_mut::<u8>();
        let span = tracing::trace_span!("inputs").entered();
        for (index, input) in self.inputs.iter().enumerate() {
            let Some(range) = &input.range else { continue };
            let bytes = &mut arena[range.clone()];
            if input.is_float16 {
                let half = bytes.len() / 2;
                endpoints.read(index, &mut bytes[half..], team)?;
                widen(self.set, bytes, context.budget)?;
            } else {
                endpoints.read(index, bytes, team)?;
            }
        }
        drop(span);
        let (budget, observer) = (context.budget, context.observer);
        self.run_steps(arena, &mut Run { team, budget, ledger: &self.ledger, observer })?;
        let _span = tracing::trace_span!("outputs").entered();
        for (index, output) in self.outputs.iter().enumerate() {
            let bytes = match &output.location {
                Location::Nowhere => &[],
                Location::Constant(constant, length) => {
                    &self.constants[*constant].elements::<u8>()[..*length]
                }
                Location::Arena(range) => &arena[range.clone()],
            };
            let bytes = match output.is_float16 {
                true => OutputBytes::Wide(bytes, self.set),
                false => OutputBytes::Ready(bytes),
            };
            endpoints.deliver(index, &output.dimensions, bytes, team, context.budget)?;
        }
        Ok(())
    }
}

impl Plan {
    /// Runs the steps, whose inputs are in the arena already, as outputs are then.
    pub(super) fn run_steps(&self, arena: &mut [u8], run: &mut Run<'_>) -> Result<(), EngineError> {
        for step in &self.steps {
            run.budget.check()?;
            let span = step.span();
            let started = run.observer.map(|_| Instant::now());
            step.kernel.run(StepMemory { arena, constants: &self.constants, step }, run)?;
            if run.team.is_stopped() {
                // Not all of what the step should have written is there.
                run.budget.check_inside()?;
            }
            drop(span);
            if let (Some(observer), Some(started)) = (run.observer, started) {
                // The time of control flow is that of its steps.
                if step.kernel.plans().is_empty() {
                    observer.duration(step.place, started.elapsed());
                }
                step.tell(arena, observer, self.set);
            }
        }
        Ok(())
    }
}

impl Step {
    /// For subscribers of traces; costs next to nothing where there are none.
    fn span(&self) -> tracing::span::EnteredSpan {
        tracing::trace_span!("step", of = %self.place, kernel = self.kernel.name()).entered()
    }

    /// Tells an observer of the outputs.
    fn tell(&self, arena: &[u8], observer: &dyn nnhal_driver::Observer, set: InstructionSet) {
        for (output, (range, observed)) in self.outputs.iter().zip(&self.observed).enumerate() {
            let Some(observed) = observed else { continue };
            let bytes = &arena[range.clone()];
            let is_float16 = observed.operand_type == nnhal_hal::OperandType::TensorFloat16;
            let narrowed = is_float16.then(|| {
                let mut halves = vec![0; bytes.len() / 4];
                f32_to_f16(set, bytemuck::cast_slice(bytes), &mut halves);
                halves
            });
            observer.output(&ObservedOutput {
                place: self.place,
                output,
                operand: observed.operand,
                rounds: &[],
                operand_type: observed.operand_type,
                dimensions: &observed.dimensions,
                bytes: narrowed.as_deref().map_or(bytes, bytemuck::cast_slice),
            });
        }
    }
}

/// Bytes that are worth copying by several threads.
const BYTES_BY_THREAD: usize = 64 << 10;

/// Copies an input, on all threads if it is large: each then has its part in its cache.
fn read(region: &Region, bytes: &mut [u8], team: &mut Team) -> Result<(), EngineError> {
    if bytes.len() < 2 * BYTES_BY_THREAD {
        return Ok(region.read(bytes)?);
    }
    assert_eq!(bytes.len() as u64, region.length(), "length of a bound argument");
    let failure = OnceLock::new();
    for_each_slice(team, bytes, BYTES_BY_THREAD, |start, part| {
        if let Err(error) = region.read_part(start as u64, part) {
            // One of them is enough.
            let _ = failure.set(error);
        }
    });
    failure.into_inner().map_or(Ok(()), |error| Err(error.into()))
}

/// Copies an output, on all threads if it is large: caches of a language model are most of what a token reads and writes.
///
/// # Errors
/// The budget is used up before, or the client's memory cannot be written.
fn write(
    output: usize,
    region: &Region,
    bytes: OutputBytes<'_>,
    team: &mut Team,
    budget: &Budget,
) -> Result<(), EngineError> {
    let length = bytes.length();
    let failure = OnceLock::new();
    let copy = |part: Range<usize>| match bytes {
        OutputBytes::Ready(bytes) => region.write(part.start as u64, &bytes[part]),
        OutputBytes::Wide(bytes, set) => {
            let mut offset = part.start as u64;
            narrow(set, &bytes[2 * part.start..2 * part.end], |piece| {
                region.write(offset, piece)?;
                offset += piece.len() as u64;
                Ok(())
            })
        }
    };
    // Threads are asked for nothing that one does as fast; before each part the deadline is.
    let part = if length < 2 * BYTES_BY_THREAD { length.max(1) } else { BYTES_BY_THREAD };
    team.run(length.div_ceil(part), &|task| {
        if let Err(error) = copy(task * part..length.min((task + 1) * part)) {
            // One of them is enough.
            let _ = failure.set(error);
        }
    });
    if team.is_stopped() {
        budget.check_inside()?;
    }
    let failure = failure.into_inner().map(|error| DeliveryError::Memory { output, error });
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Turns floats of 16 bits, which fill the second half, into floats of 32 bits, which fill it all.
///
/// # Errors
/// The budget is used up before.
fn widen(set: InstructionSet, bytes: &mut [u8], budget: &Budget) -> Result<(), EngineError> {
    let values: &mut [f32] = bytemuck::cast_slice_mut(bytes);
    for block in budget.blocks(values.len()) {
        f16_to_f32_in_place(set, values, block?);
    }
    Ok(())
}

/// Floats that are turned into floats of 16 bits at a time.
const PIECE: usize = 512;

/// Gives floats of 32 bits as floats of 16 bits, piece by piece, for which nothing is allocated.
///
/// # Errors
/// Those of `take`.
fn narrow<E>(
    set: InstructionSet,
    bytes: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    // What is left out has no place in the arena, and so is not aligned.
    if bytes.is_empty() {
        return Ok(());
    }
    let values: &[f32] = bytemuck::cast_slice(bytes);
    let mut halves = [0; PIECE];
    for wide in values.chunks(PIECE) {
        let halves = &mut halves[..wide.len()];
        f32_to_f16(set, wide, halves);
        take(bytemuck::cast_slice(halves))?;
    }
    Ok(())
}

/// An empty vector for a value of this many bytes.
fn reserve(bytes: usize) -> Result<Vec<u8>, EngineError> {
    let mut room = Vec::new();
    let (user, wanted) = (MemoryUse::Values, bytes as u64);
    room.try_reserve_exact(bytes).map_err(|_| EngineError::Allocation { user, wanted })?;
    Ok(room)
}

/// Floats of 32 bits as floats of 16 bits.
///
/// # Errors
/// The budget is used up before, or there is no memory.
pub(super) fn narrowed_until(
    set: InstructionSet,
    bytes: &[u8],
    budget: &Budget,
) -> Result<Vec<u8>, EngineError> {
    let mut all = reserve(bytes.len() / 2)?;
    for block in budget.blocks(bytes.len()) {
        narrow(set, &bytes[block?], |piece| {
            all.extend_from_slice(piece);
            Ok::<_, EngineError>(())
        })?;
    }
    Ok(all)
}
