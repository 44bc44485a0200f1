//! [`Preparation`]: what kernels are prepared for, and where their packed weights go.

use crate::allowance::room_for;
use crate::lines::{LINE_BYTES, Lines};
use crate::team::{KeptQuestion, Pace, Stop};
use crate::{InstructionSet, MemoryLimit, SavedWeights, TooLarge};
use bytemuck::{Pod, Zeroable};
use bytes::Bytes;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

/// What kernels are prepared for, and where their packed weights go.
///
/// Packed weights of many kernels are in a few large pieces of memory. They can be kept
/// ([`Self::take_packed`]) and given to the preparation of the same kernels another time
/// ([`Self::restore`]), which then does not look at weights: only sizes, and what is small, must be
/// given again. Weights are given empty then.
///
/// What a kernel will keep is counted against a [`MemoryLimit`] before any of it is there
/// ([`Self::limited_by`]), and what it would want of scratch memory is compared with it. A kernel that
/// may not have so much is not made: preparing it gives [`TooLarge`], which [`Self::take_refusal`] also
/// tells.
///
/// Kernels run when their preparation has been dropped.
#[derive(Debug)]
pub struct Preparation {
    set: InstructionSet,
    threads: usize,
    allows_winograd: bool,
    limit: Arc<dyn MemoryLimit>,
    refusal: Option<TooLarge>,
    memory: Memory,
    packed: Vec<Packed>,
    stop: Stop,
}

#[derive(Debug)]
enum Memory {
    New {
        /// Lines of the next chunk, at least.
        room: usize,
        open: Option<OpenChunk>,
    },
    Saved {
        chunk: Arc<OnceLock<Bytes>>,
        /// Lines that are left for kernels to come.
        rest: Range<usize>,
        is_too_short: bool,
    },
}

/// A chunk that is being filled.
#[derive(Debug)]
struct OpenChunk {
    to_be: Arc<OnceLock<Bytes>>,
    lines: Lines,
    used: usize,
}

/// Packed weights of a kernel.
#[derive(Debug, Clone)]
pub struct Packed {
    /// Memory that is no longer written, once it is there.
    chunk: Arc<OnceLock<Bytes>>,
    lines: Range<usize>,
}

impl Packed {
    /// How many bytes there are.
    pub fn length(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// The bytes, a multiple of [`LINE_BYTES`].
    ///
    /// # Panics
    /// If the preparation that they were packed by has not been dropped.
    pub fn bytes(&self) -> &[u8] {
        let chunk = self.chunk.get().expect("kernels run when their preparation is over");
        &chunk[self.lines.start * LINE_BYTES..self.lines.end * LINE_BYTES]
    }
}

/// Packed weights of a kernel, by their type.
#[derive(Debug, Clone)]
pub(crate) struct PackedValues<T> {
    packed: Packed,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Pod> PackedValues<T> {
    /// # Panics
    /// If the preparation that they were packed by has not been dropped.
    pub(crate) fn values(&self) -> &[T] {
        bytemuck::cast_slice(&self.packed.bytes()[..self.count * size_of::<T>()])
    }
}

/// The weights that were saved are not those of these kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherWeights;

impl fmt::Display for OtherWeights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the packed weights are those of other kernels")
    }
}

impl std::error::Error for OtherWeights {}

impl Preparation {
    /// For an instruction set and this many threads.
    pub fn new(set: InstructionSet, threads: usize) -> Self {
        Self::of(set, threads, Memory::New { room: 0, open: None })
    }

    fn of(set: InstructionSet, threads: usize, memory: Memory) -> Self {
        Self {
            set,
            threads: threads.max(1),
            allows_winograd: true,
            // As much as can be addressed.
            limit: Arc::new(AtomicUsize::new(isize::MAX.unsigned_abs())),
            refusal: None,
            memory,
            packed: Vec::new(),
            stop: Stop::asking(None),
        }
    }

    /// The same, that stops in the middle of weights when the answer is yes, after which it stays so. What
    /// the kernels of this preparation compute is then meaningless: they are to be dropped.
    #[must_use]
    pub fn until(mut self, is_over: KeptQuestion) -> Self {
        self.stop = Stop::asking(Some(is_over));
        self
    }

    /// The same, for kernels that take no more than is left, by a limit that others may count against as well.
    #[must_use]
    pub fn limited_by(mut self, limit: Arc<dyn MemoryLimit>) -> Self {
        self.limit = limit;
        self
    }

    /// The same, for kernels that take no more than a number of bytes.
    #[cfg(test)]
    pub(crate) fn with_limit(self, bytes: usize) -> Self {
        self.limited_by(Arc::new(AtomicUsize::new(bytes)))
    }

    /// The same, that takes memory for this many bytes of packed weights at a time.
    #[must_use]
    pub fn with_room(mut self, bytes: usize) -> Self {
        if let Memory::New { room, .. } = &mut self.memory {
            *room = bytes.div_ceil(LINE_BYTES);
        }
        self
    }

    /// The same, in which convolutions are sums of products as they are defined, and not computed by
    /// Winograd's transforms, which take fewer products and, of floats, round more.
    #[must_use]
    pub fn without_winograd(mut self) -> Self {
        self.allows_winograd = false;
        self
    }

    /// A preparation that takes packed weights from `saved`: what [`Packed::bytes`] were of a
    /// preparation of the same kernels, in the same order, one behind the other.
    pub fn restore(set: InstructionSet, threads: usize, saved: SavedWeights) -> Self {
        let rest = 0..saved.0.len() / LINE_BYTES;
        let chunk = Arc::new(OnceLock::from(saved.0));
        Self::of(set, threads, Memory::Saved { chunk, rest, is_too_short: false })
    }

    /// The instruction set.
    pub fn set(&self) -> InstructionSet {
        self.set
    }

    /// How many threads share the work, at least one.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Whether Winograd's transforms may be used.
    pub(crate) fn allows_winograd(&self) -> bool {
        self.allows_winograd
    }

    /// Whether weights are not looked at, because they have been packed before.
    pub fn is_restoring(&self) -> bool {
        matches!(self.memory, Memory::Saved { .. })
    }

    /// For loops over weights, as long as their results are wanted.
    pub(crate) fn pace(&self) -> Pace<'_> {
        Pace::new(&self.stop)
    }

    /// What was packed since the last time, in its order.
    pub fn take_packed(&mut self) -> Vec<Packed> {
        std::mem::take(&mut self.packed)
    }

    /// What was refused since the last time, the first of it: then there is a kernel that was not
    /// made.
    pub fn take_refusal(&mut self) -> Option<TooLarge> {
        self.refusal.take()
    }

    /// Ends it.
    ///
    /// # Errors
    /// If weights were restored and there were fewer than kernels wanted, or more.
    pub fn finish(self) -> Result<(), OtherWeights> {
        match &self.memory {
            Memory::Saved { rest, is_too_short, .. } if *is_too_short || !rest.is_empty() => {
                Err(OtherWeights)
            }
            _ => Ok(()),
        }
    }

    /// # Panics
    /// If there are fewer weights, where weights are looked at.
    pub(crate) fn check_count(&self, found: usize, expected: usize, what: &str) {
        assert!(self.is_restoring() || found == expected, "{found} and not {expected} {what}");
    }

    /// Counts memory against the limit, before it is there.
    pub(crate) fn take<T>(&mut self, count: usize, what: &'static str) -> Result<(), TooLarge> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(TooLarge::beyond_addresses(what));
        let taken = bytes.and_then(|bytes| take(&*self.limit, bytes, what));
        self.remembered(taken)
    }

    /// Checks that scratch memory for this many values, the product of some numbers, could be taken.
    /// It is not, because steps share it.
    pub(crate) fn check_scratch<T>(&mut self, count: &[usize]) -> Result<(), TooLarge> {
        const WHAT: &str = "scratch memory";
        let bytes = product(count).and_then(|count| count.checked_mul(size_of::<T>()));
        let left = self.limit.left();
        let checked = match bytes {
            None => Err(TooLarge::beyond_addresses(WHAT)),
            Some(wanted) if wanted > left => Err(TooLarge::new(WHAT, wanted, left)),
            Some(_) => Ok(()),
        };
        self.remembered(checked)
    }

    /// Checks that this many values, the product of some numbers, are no more than can be addressed.
    pub(crate) fn check_size<T>(
        &mut self,
        count: &[usize],
        what: &'static str,
    ) -> Result<(), TooLarge> {
        let bytes = product(count).and_then(|count| count.checked_mul(size_of::<T>()));
        let is_possible = bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok());
        self.remembered(is_possible.then_some(()).ok_or(TooLarge::beyond_addresses(what)))
    }

    /// A value for each of this many, which counts against the limit.
    pub(crate) fn filled<T: Zeroable + Copy + PartialEq>(
        &mut self,
        value: T,
        count: usize,
        what: &'static str,
    ) -> Result<Vec<T>, TooLarge> {
        let mut values = self.zeros(count, what)?;
        // Zeros of the system's are not written, and so take no time.
        if value != T::zeroed() {
            for block in self.pace().blocks(count, 1) {
                values[block].fill(value);
            }
        }
        Ok(values)
    }

    /// A copy of values, which counts against the limit.
    pub(crate) fn copied<T: Zeroable + Copy>(
        &mut self,
        values: &[T],
        what: &'static str,
    ) -> Result<Vec<T>, TooLarge> {
        self.repeated(values, 1, what)
    }

    /// Values this number of times, one copy behind the other, which count against the limit.
    pub(crate) fn repeated<T: Zeroable + Copy>(
        &mut self,
        values: &[T],
        times: usize,
        what: &'static str,
    ) -> Result<Vec<T>, TooLarge> {
        let count = values.len().checked_mul(times).ok_or(TooLarge::beyond_addresses(what))?;
        let mut all = self.zeros(count, what)?;
        let mut pace = self.pace();
        for copy in all.chunks_exact_mut(values.len().max(1)) {
            for block in pace.blocks(values.len(), 1) {
                copy[block.clone()].copy_from_slice(&values[block]);
            }
        }
        Ok(all)
    }

    /// Whether what is prepared is no longer wanted: for loops whose rounds have a [pace](Self::pace) each.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_due()
    }

    /// Values one after the other, which count against the limit: for what kernels are prepared with
    /// or keep beside their packed weights. Once it is too late they are zero.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub fn collected<T: Zeroable>(
        &mut self,
        mut values: impl ExactSizeIterator<Item = T>,
        what: &'static str,
    ) -> Result<Vec<T>, TooLarge> {
        let mut all = self.zeros(values.len(), what)?;
        for block in self.pace().blocks(all.len(), 1) {
            for (to, value) in all[block].iter_mut().zip(&mut values) {
                *to = value;
            }
        }
        Ok(all)
    }

    /// Zeros, which count against the limit.
    pub(crate) fn zeros<T: Zeroable>(
        &mut self,
        count: usize,
        what: &'static str,
    ) -> Result<Vec<T>, TooLarge> {
        self.take::<T>(count, what)?;
        let denied = |()| TooLarge::no_memory(what, count.saturating_mul(size_of::<T>()));
        self.remembered(bytemuck::try_zeroed_vec(count).map_err(denied))
    }

    /// Room for this many values, which counts against the limit.
    pub(crate) fn room<T>(&mut self, count: usize, what: &'static str) -> Result<Vec<T>, TooLarge> {
        self.take::<T>(count, what)?;
        self.remembered(room_for(count, what))
    }

    /// Keeps the first refusal.
    fn remembered<T>(&mut self, result: Result<T, TooLarge>) -> Result<T, TooLarge> {
        if let Err(refusal) = &result {
            self.refusal.get_or_insert(*refusal);
        }
        result
    }

    /// Room for this many values, zero at first, that `fill` fills, unless they have been packed before.
    pub(crate) fn pack<T: Pod>(
        &mut self,
        count: usize,
        fill: impl FnOnce(&mut [T], &mut Pace<'_>),
    ) -> Result<PackedValues<T>, TooLarge> {
        let mut fill = Some(fill);
        let bytes = count.checked_mul(size_of::<T>());
        let packed = self.pack_bytes(bytes, &mut |bytes, pace| {
            if let Some(fill) = fill.take() {
                fill(bytemuck::cast_slice_mut(bytes), pace);
            }
        });
        let packed = self.remembered(packed)?;
        Ok(PackedValues { packed, count, of: PhantomData })
    }

    /// [`pack`](Self::pack) of whatever has this many bytes, if they can be counted.
    fn pack_bytes(
        &mut self,
        wanted: Option<usize>,
        fill: &mut dyn FnMut(&mut [u8], &mut Pace<'_>),
    ) -> Result<Packed, TooLarge> {
        const WHAT: &str = "packed weights";
        let Some(bytes) = wanted.filter(|bytes| isize::try_from(*bytes).is_ok()) else {
            return Err(TooLarge::beyond_addresses(WHAT));
        };
        let lines = bytes.div_ceil(LINE_BYTES);
        let packed = match &mut self.memory {
            Memory::Saved { chunk, rest, .. } if lines <= rest.len() => {
                let lines = rest.start..rest.start + lines;
                rest.start = lines.end;
                Packed { chunk: Arc::clone(chunk), lines }
            }
            Memory::Saved { rest, is_too_short, .. } => {
                *is_too_short = true;
                return Err(TooLarge::new("saved weights", bytes, rest.len() * LINE_BYTES));
            }
            Memory::New { room, open } => {
                take(&*self.limit, lines * LINE_BYTES, WHAT)?;
                let is_full = |chunk: &OpenChunk| chunk.lines.lines().len() - chunk.used < lines;
                if open.as_ref().is_none_or(is_full) {
                    close(open);
                    let room = (*room).min(self.limit.left() / LINE_BYTES);
                    let lines = Lines::try_with_bytes(lines.max(room) * LINE_BYTES)?;
                    *open = Some(OpenChunk { to_be: Arc::default(), lines, used: 0 });
                }
                let chunk = open.as_mut().expect("it was just opened");
                let lines = chunk.used..chunk.used + lines;
                chunk.used = lines.end;
                let values: &mut [u8] =
                    bytemuck::cast_slice_mut(&mut chunk.lines.lines_mut()[lines.clone()]);
                let mut pace = Pace::new(&self.stop);
                fill(&mut values[..bytes], &mut pace);
                Packed { chunk: Arc::clone(&chunk.to_be), lines }
            }
        };
        self.packed.push(packed.clone());
        Ok(packed)
    }

    /// What follows from weights and is wanted while kernels are prepared: this many values, zero at
    /// first, that `fill` fills, unless that was done before.
    pub(crate) fn derive<T: Pod>(
        &mut self,
        count: usize,
        fill: impl FnOnce(&mut [T], &mut Pace<'_>),
    ) -> Result<Vec<T>, TooLarge> {
        if self.is_restoring() {
            return Ok(self.pack(count, |_, _| {})?.values().to_vec());
        }
        let mut values = self.zeros(count, "what follows from weights")?;
        fill(&mut values, &mut self.pace());
        self.pack(count, |packed, _| packed.copy_from_slice(&values))?;
        Ok(values)
    }
}

/// The product of some sizes; none if it is beyond what can be addressed.
pub(crate) fn product(sizes: &[usize]) -> Option<usize> {
    sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size))
}

/// Counts bytes against a limit.
fn take(limit: &dyn MemoryLimit, bytes: usize, what: &'static str) -> Result<(), TooLarge> {
    limit.take(bytes).map_err(|left| TooLarge::new(what, bytes, left))
}

/// From here on a chunk is read.
fn close(chunk: &mut Option<OpenChunk>) {
    if let Some(OpenChunk { to_be, lines, .. }) = chunk.take() {
        // No one else fills it.
        let _ = to_be.set(Bytes::from_owner(lines));
    }
}

impl Drop for Preparation {
    fn drop(&mut self) {
        if let Memory::New { open, .. } = &mut self.memory {
            close(open);
        }
    }
}

/// A kernel that was prepared twice: the second time of what the first one packed.
#[cfg(test)]
pub(crate) fn prepared_twice<K>(
    set: InstructionSet,
    threads: usize,
    prepare: impl Fn(&mut Preparation) -> Result<K, TooLarge>,
) -> K {
    let mut first = Preparation::new(set, threads);
    prepare(&mut first).expect("nothing limits it");
    let packed = first.take_packed();
    drop(first);
    let saved: Vec<u8> = packed.iter().flat_map(Packed::bytes).copied().collect();
    let mut second = Preparation::restore(set, threads, SavedWeights::new(saved.into()));
    let kernel = prepare(&mut second).expect("as much was saved");
    second.finish().expect("it wants the same weights");
    kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_pack(preparation: &mut Preparation, number: u16) -> Result<PackedValues<u16>, TooLarge> {
        preparation.pack(40, |values, _| {
            assert_eq!(values, [0; 40]);
            values.fill(number);
        })
    }

    fn pack(preparation: &mut Preparation, numbers: [u16; 3]) -> [PackedValues<u16>; 3] {
        numbers.map(|number| try_pack(preparation, number).unwrap())
    }

    fn new() -> Preparation {
        Preparation::new(InstructionSet::Portable, 1)
    }

    #[test]
    fn values_are_counted_before_they_are_collected() {
        let mut preparation = new().with_limit(40);
        let collected = preparation.collected([1_u64, 2, 3].into_iter(), "numbers");
        assert_eq!(collected.unwrap(), [1, 2, 3]);
        let refusal = preparation.collected([0_u64; 3].into_iter(), "numbers").unwrap_err();
        assert_eq!((refusal.what, refusal.wanted, refusal.left), ("numbers", Some(24), Some(16)));
        assert_eq!(preparation.take_refusal(), Some(refusal));
    }

    #[test]
    fn copies_end_when_they_are_not_wanted_any_more() {
        let many = vec![5_u32; 1 << 22];
        let mut preparation = new().until(Arc::new(|| true));
        let copies = [
            preparation.copied(&many, "numbers").unwrap(),
            preparation.collected(many.iter().copied(), "numbers").unwrap(),
            preparation.filled(5, many.len(), "numbers").unwrap(),
        ];
        for copy in copies {
            let written = copy.iter().take_while(|number| **number == 5).count();
            assert!((1..many.len() / 2).contains(&written), "{written}");
            assert!(copy.len() == many.len() && copy[written..].iter().all(|number| *number == 0));
        }
        let mut preparation = new();
        assert!(preparation.copied(&many, "numbers").unwrap() == many);
        assert!(preparation.collected(many.iter().copied(), "numbers").unwrap() == many);
        assert!(preparation.filled(5, many.len(), "numbers").unwrap() == many);
    }

    #[test]
    fn what_exceeds_the_limit_is_refused_before_it_is_taken() {
        let mut preparation = new().with_room(1 << 20).with_limit(3 * LINE_BYTES);
        try_pack(&mut preparation, 1).unwrap();
        let refusal = try_pack(&mut preparation, 2).unwrap_err();
        assert_eq!(refusal, TooLarge::new("packed weights", 2 * LINE_BYTES, LINE_BYTES));
        let unreachable = |_: &mut [u64], _: &mut Pace<'_>| unreachable!();
        // 2^64 bytes and more are no less.
        for count in [1 << 60, 1 << 61, 1 << 63, usize::MAX] {
            preparation.pack(count, unreachable).unwrap_err();
            preparation.derive(count, unreachable).unwrap_err();
            preparation.check_scratch::<u64>(&[count]).unwrap_err();
            preparation.check_scratch::<u64>(&[count, 16]).unwrap_err();
        }
        preparation.check_scratch::<u64>(&[2, 4]).unwrap();
        preparation.check_scratch::<u64>(&[3, 4]).unwrap_err();
        assert_eq!(preparation.take_refusal(), Some(refusal));
        assert_eq!(preparation.take_refusal(), None);
        preparation.pack(64, |_: &mut [u8], _| {}).unwrap();
        preparation.pack(1, |_: &mut [u8], _| {}).unwrap_err();
    }

    #[test]
    fn preparations_share_a_limit() {
        let limit = Arc::new(AtomicUsize::new(5 * LINE_BYTES));
        let mut preparations = [(); 2].map(|()| new().limited_by(Arc::clone(&limit) as _));
        let packed = [0, 1, 0].map(|it| try_pack(&mut preparations[it], 1).is_ok());
        assert_eq!((packed, limit.left()), ([true, true, false], LINE_BYTES));
    }

    #[test]
    fn memory_that_the_system_does_not_have_is_an_error() {
        let mut preparation = new();
        for bytes in [1_usize << 62, isize::MAX.unsigned_abs(), usize::MAX] {
            preparation.pack(bytes, |_: &mut [u8], _| unreachable!()).unwrap_err();
            preparation.derive(bytes, |_: &mut [u8], _| unreachable!()).unwrap_err();
        }
    }

    #[test]
    fn what_was_packed_is_there_again_when_it_is_restored() {
        for room in [0, 200, 10_000] {
            let mut first = Preparation::new(InstructionSet::Portable, 1).with_room(room);
            let made = pack(&mut first, [1, 2, 3]);
            let packed = first.take_packed();
            first.finish().unwrap();
            let saved: Vec<u8> = packed.iter().flat_map(|it| it.bytes()).copied().collect();
            assert_eq!(saved.len(), 3 * 2 * LINE_BYTES);
            let restore = |bytes: &[u8]| {
                let saved = SavedWeights::new(bytes.to_vec().into());
                Preparation::restore(InstructionSet::Portable, 1, saved)
            };

            let mut second = restore(&saved);
            let again = second.pack(40, |_: &mut [u16], _| unreachable!()).unwrap();
            assert_eq!((made[0].values(), again.values().len()), (again.values(), 40));
            let rest = [0; 3].map(|number| try_pack(&mut second, number).is_ok());
            assert_eq!(rest, [true, true, false]);
            assert_eq!(second.finish(), Err(OtherWeights));

            let mut all = restore(&saved);
            let again = pack(&mut all, [9; 3]);
            all.finish().unwrap();
            for (made, again) in made.iter().zip(&again) {
                assert_eq!(made.values(), again.values());
            }
            assert_eq!(restore(&saved).finish(), Err(OtherWeights));
        }
    }
}
