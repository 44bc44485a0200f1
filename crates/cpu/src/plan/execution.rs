//! Running a plan.

use super::arena::{OutputMemory, StepMemory};
use super::{Location, Plan, Run, Step};
use nnhal_driver::bindings::Region;
use nnhal_driver::{
    Bindings, Budget, Charge, DeliveryError, Destination, EngineError, MemoryUse, ObservedOutput,
    RunContext,
};
use nnhal_hal::memory::BorrowedBytes;
use nnhal_kernels::elementwise::{f16_to_f32_in_place, f32_to_f16};
use nnhal_kernels::{InstructionSet, Lines, Team, for_each_slice};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Instant;

/// What one execution needs and no other one may use at the same time.
#[derive(Debug)]
pub(crate) struct Workspace {
    arena: Lines,
    /// The memory of outputs beside it during an execution.
    beside: Vec<OutputMemory>,
    /// For those that are not in the caller's memory; `None` as long as none was needed.
    own: Vec<Option<Lines>>,
    charge: Charge,
}

impl Workspace {
    /// # Errors
    /// There is no memory for it.
    pub(crate) fn new(plan: &Plan) -> Result<Self, EngineError> {
        let (user, wanted) = (MemoryUse::Values, plan.arena_bytes as u64);
        let charge = plan.ledger.charge(wanted, user)?;
        let arena = Lines::try_with_bytes(plan.arena_bytes);
        let arena = arena.map_err(|_| EngineError::Allocation { user, wanted })?;
        let own = plan.beside.iter().map(|_| None).collect();
        Ok(Self { arena, beside: Vec::new(), own, charge })
    }

    /// Gets the memory of the outputs beside the arena: the caller's, where that can be written while the plan runs.
    /// To be called before an execution.
    ///
    /// # Errors
    /// There is no memory for the others.
    pub(crate) fn begin(
        &mut self,
        plan: &Plan,
        endpoints: &impl Endpoints,
    ) -> Result<(), EngineError> {
        self.end();
        for ((output, range), own) in plan.beside.iter().zip(&mut self.own) {
            let borrowed = endpoints.borrow(*output, range.len()).filter(|it| is_aligned(it));
            if let Some(borrowed) = borrowed {
                self.beside.push(OutputMemory::Borrowed(borrowed));
                continue;
            }
            if own.is_none() {
                let (user, wanted) = (MemoryUse::Values, range.len() as u64);
                let charged = self.charge.bytes();
                self.charge.grow(wanted, user)?;
                let lines = Lines::try_with_bytes(range.len()).map_err(|_| {
                    self.charge.shrink_to(charged);
                    EngineError::Allocation { user, wanted }
                })?;
                *own = Some(lines);
            }
            self.beside.extend(own.take().map(OutputMemory::Own));
        }
        Ok(())
    }

    /// Gives back what the caller's is, and keeps what is not. To be called after an execution.
    pub(crate) fn end(&mut self) {
        for (own, output) in self.own.iter_mut().zip(self.beside.drain(..)) {
            if let OutputMemory::Own(lines) = output {
                *own = Some(lines);
            }
        }
    }
}

/// Whether kernels can write any elements there.
fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(align_of::<u128>())
}

/// Where a plan's inputs come from, and where its outputs go.
pub(crate) trait Endpoints {
    /// Copies the bytes of an input, as models have them.
    fn read(&self, input: usize, bytes: &mut [u8], team: &mut Team) -> Result<(), EngineError>;

    /// The memory that an output of this many bytes is to be in, if it can be written while the plan runs. It is delivered all the
    /// same, as [`OutputBytes::InPlace`].
    fn borrow(&self, output: usize, length: usize) -> Option<BorrowedBytes>;

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
    /// It is where it is to be; its number of bytes.
    InPlace(usize),
    /// As models have it.
    Ready(&'run [u8]),
    /// Floats of 32 bits that models have as floats of 16 bits, and what makes those of them.
    Wide(&'run [u8], InstructionSet),
}

impl OutputBytes<'_> {
    /// Number of bytes, as models have them.
    fn length(&self) -> usize {
        match self {
            Self::InPlace(length) => *length,
            Self::Ready(bytes) => bytes.len(),
            Self::Wide(bytes, _) => bytes.len() / 2,
        }
    }

    /// A copy, as models have it.
    ///
    /// # Errors
    /// The budget is used up before, or there is no memory; it is in place, and so needs no copy.
    pub(crate) fn into_vec(self, budget: &Budget) -> Result<Vec<u8>, EngineError> {
        match self {
            Self::InPlace(_) => {
                Err(nnhal_hal::Error::failure("an output is in memory that was not given").into())
            }
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

    fn borrow(&self, output: usize, length: usize) -> Option<BorrowedBytes> {
        self.borrow_output(output, length as u64)
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
        let destination = bound.begin(dimensions, bytes.length() as u64)?;
        match (destination, bytes) {
            (Destination::TooShort | Destination::NotWanted, _) | (_, OutputBytes::InPlace(_)) => {
                Ok(())
            }
            (Destination::Region(region), bytes) => write(output, &region, bytes, team, budget),
        }
    }
}

impl Plan {
    /// Computes the outputs for inputs that have the dimensions that the plan is for. The workspace has been
    /// [begun](Workspace::begin).
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

    /// Copies inputs, runs the steps and delivers outputs.
    fn run_awake(
        &self,
        mut endpoints: impl Endpoints,
        context: &RunContext<'_>,
        workspace: &mut Workspace,
        team: &mut Team,
    ) -> Result<(), EngineError> {
        let Workspace { arena, beside, .. } = workspace;
        let arena = arena.elements_mut::<u8>();
        let span = tracing::trace_span!("inputs").entered();
        for (index, input) in self.inputs.iter().enumerate() {
            let Some(range) = &input.range else { continue };
            let bytes = match self.find_beside(range) {
                Some((output, range)) => &mut beside[output].bytes_mut()[range],
                None => &mut arena[range.clone()],
            };
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
        let run = &mut Run { team: &mut *team, budget, ledger: &self.ledger, observer };
        self.run_steps(arena, beside, run)?;
        let _span = tracing::trace_span!("outputs").entered();
        for (index, output) in self.outputs.iter().enumerate() {
            let (bytes, is_in_place) = match &output.location {
                Location::Nowhere => (&[][..], false),
                Location::Constant(constant, length) => {
                    (&self.constants[*constant].elements::<u8>()[..*length], false)
                }
                Location::Arena(range) => {
                    let place = self.find_beside(range).map(|(output, _)| &beside[output]);
                    let is_in_place = matches!(place, Some(OutputMemory::Borrowed(_)));
                    (self.bytes(range, arena, beside), is_in_place)
                }
            };
            let bytes = match output.is_float16 {
                true => OutputBytes::Wide(bytes, self.set),
                false if is_in_place => OutputBytes::InPlace(bytes.len()),
                false => OutputBytes::Ready(bytes),
            };
            endpoints.deliver(index, &output.dimensions, bytes, team, context.budget)?;
        }
        Ok(())
    }

    /// Which of the outputs beside the arena has these bytes, and where in its memory.
    fn find_beside(&self, range: &Range<usize>) -> Option<(usize, Range<usize>)> {
        let index = self.beside.partition_point(|(_, it)| it.start <= range.start);
        let index = index.checked_sub(1)?;
        let Range { start, .. } = self.beside[index].1;
        Some((index, range.start - start..range.end - start))
    }

    /// Bytes of the arena, or of an output beside it.
    fn bytes<'run>(
        &self,
        range: &Range<usize>,
        arena: &'run [u8],
        beside: &'run [OutputMemory],
    ) -> &'run [u8] {
        match self.find_beside(range) {
            Some((output, range)) => &beside[output].bytes()[range],
            None => &arena[range.clone()],
        }
    }
}

impl Plan {
    /// Runs the steps, whose inputs are in the arena already, as outputs are then.
    pub(super) fn run_steps(
        &self,
        arena: &mut [u8],
        beside: &mut [OutputMemory],
        run: &mut Run<'_>,
    ) -> Result<(), EngineError> {
        for step in &self.steps {
            run.budget.check()?;
            let span = step.span();
            let started = run.observer.map(|_| Instant::now());
            let memory = StepMemory { arena, beside, constants: &self.constants, step };
            step.kernel.run(memory, run)?;
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
                step.tell(|range| self.bytes(range, arena, beside), observer, self.set);
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
    fn tell<'run>(
        &self,
        bytes: impl Fn(&Range<usize>) -> &'run [u8],
        observer: &dyn nnhal_driver::Observer,
        set: InstructionSet,
    ) {
        for (output, (range, observed)) in self.outputs.iter().zip(&self.observed).enumerate() {
            let Some(observed) = observed else { continue };
            let bytes = bytes(range);
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
        OutputBytes::InPlace(_) => Ok(()),
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
