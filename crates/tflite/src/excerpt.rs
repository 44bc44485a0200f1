//! [`Excerpt`]: a private copy of a file, without its large constants.

use crate::error::{ImportError, Reason};
use crate::foreign;
use crate::graph::{OUTSIDE, Stored};
use nnhal_hal::Memory;
use nnhal_hal::memory::{MemoryError, MemoryView, Zeros, zeros};
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ops::Range;

/// A private copy of a file. Blocks that are part of a large constant are left out, zero in the copy,
/// and read when somebody wants them: most are not looked at before they are packed.
///
/// Where constants are is looked up first. If the file changes meanwhile, or has tables within its
/// constants, then tables are zero: an error, as in any broken file.
#[derive(Debug)]
pub(crate) struct Excerpt {
    bytes: Zeros,
    pool: Memory,
    view: MemoryView,
    /// By block: whether it has been copied.
    copied: Vec<bool>,
    /// Whether there may be holes in the file.
    may_have_holes: bool,
    /// Constants that are not in the file, see [`OUTSIDE`].
    outside: Vec<MemoryView>,
}

/// Bytes that are copied together: those of a page, since a new page takes longer than asking for what it is to hold. Around
/// each large constant parts of blocks are copied for nothing.
const BLOCK: usize = 4 << 10;

/// Bytes 4 to 7 of every file of the format.
const IDENTIFIER: &[u8; 4] = b"TFL3";

/// Fields of the tables `Model` and `Buffer`.
const MODEL_BUFFERS: usize = 4;
const BUFFER_DATA: usize = 0;
const BUFFER_OFFSET: usize = 1;
const BUFFER_SIZE: usize = 2;

/// More constants than this are not looked up; those behind are copied.
const MOST_CONSTANTS: usize = 1 << 16;

/// Whether a file takes less on its disk, or in memory, than its length is.
fn may_have_holes(file: &Memory) -> bool {
    const UNIT: u64 = 512;
    fstat(file).map_or(true, |status| {
        let [units, length] =
            [status.st_blocks, status.st_size].map(|it| u64::try_from(it).unwrap_or(0));
        units.saturating_mul(UNIT) < length
    })
}

impl Excerpt {
    /// Of a file in memory that anybody may write.
    ///
    /// # Errors
    /// It cannot be read, or is too large for a copy.
    pub(crate) fn new(pool: &Memory) -> Result<Self, ImportError> {
        let bytes = zeros(pool.size())?;
        let copied = vec![false; bytes.len().div_ceil(BLOCK)];
        let (pool, view) = (pool.clone(), pool.view()?);
        let may_have_holes = !view.is_lent() && may_have_holes(&pool);
        let outside = Vec::new();
        let mut excerpt = Self { bytes, pool, view, copied, may_have_holes, outside };
        // Before anything else: the file may be large, and anything.
        if excerpt.number(4) != Some(*IDENTIFIER) {
            let count = excerpt.bytes.len().min(foreign::BEGINNING);
            let mut beginning = vec![0; count];
            excerpt.view.read(0, &mut beginning)?;
            return Err(ImportError::Format(foreign::sentence(&beginning, excerpt.bytes.len())));
        }
        let mut is_wanted = vec![true; excerpt.copied.len()];
        for constant in excerpt.constants() {
            if let Some(within) =
                is_wanted.get_mut(constant.start.div_ceil(BLOCK)..constant.end / BLOCK)
            {
                within.fill(false);
            }
        }
        let mut next = 0;
        while next < is_wanted.len() {
            let is_missing = |block: &usize| is_wanted[*block] && !excerpt.copied[*block];
            let count = (next..is_wanted.len()).take_while(is_missing).count();
            if count > 0 {
                excerpt.copy(next..next + count)?;
            }
            next += count.max(1);
        }
        Ok(excerpt)
    }

    /// Of a file, and the constants that are not in it.
    ///
    /// # Errors
    /// As [`Excerpt::new`].
    pub(crate) fn of(stored: &Stored) -> Result<Self, ImportError> {
        let mut excerpt = Self::new(&stored.tables)?;
        for memory in &stored.outside {
            excerpt.outside.push(memory.view()?);
        }
        Ok(excerpt)
    }

    /// Bytes of the file and of all that is outside.
    pub(crate) fn size(&self) -> usize {
        let outside = self.outside.iter().map(MemoryView::size).sum::<u64>();
        self.bytes.len().saturating_add(usize::try_from(outside).unwrap_or(usize::MAX))
    }

    /// How much memory there is beside the file.
    pub(crate) fn outside_count(&self) -> usize {
        self.outside.len()
    }

    /// Whether there are such bytes, in the file or outside.
    pub(crate) fn holds(&self, range: &Range<usize>) -> bool {
        range.end <= self.bytes.len() || self.place(range).is_some_and(|(pool, _)| pool > 0)
    }

    /// Which memory a range is in, 0 is the file, and where it begins there; `None` if it is in none.
    pub(crate) fn place(&self, range: &Range<usize>) -> Option<(usize, u64)> {
        if range.end <= self.bytes.len() {
            return Some((0, range.start as u64));
        }
        let start = range.start as u64;
        let number = usize::try_from(start / OUTSIDE).ok()?;
        let view = self.outside.get(number.checked_sub(1)?)?;
        let offset = start % OUTSIDE;
        view.check_range(offset, range.len() as u64).ok()?;
        Some((number, offset))
    }

    /// All bytes; those that are left out are zero.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether none of the range is left out.
    pub(crate) fn has(&self, range: &Range<usize>) -> bool {
        let blocks = self.copied.get(range.start / BLOCK..range.end.div_ceil(BLOCK));
        blocks.is_some_and(|blocks| blocks.iter().all(|copied| *copied))
    }

    /// The bytes of a range within the file; they are read anew if any of them is left out.
    pub(crate) fn read(&self, range: Range<usize>) -> Result<Cow<'_, [u8]>, Reason> {
        if self.has(&range) {
            return Ok(Cow::Borrowed(&self.bytes[range]));
        }
        let (number, offset) = self
            .place(&range)
            .ok_or_else(|| Reason::new("a constant is neither in the file nor outside of it"))?;
        let view = if number == 0 { &self.view } else { &self.outside[number - 1] };
        let read = view.read_to_vec(offset, range.len() as u64);
        let failed = |error| Reason::new(format!("a constant cannot be read: {error}"));
        read.map(Cow::Owned).map_err(failed)
    }

    fn copy(&mut self, blocks: Range<usize>) -> Result<(), MemoryError> {
        let (start, end) = (blocks.start * BLOCK, self.bytes.len().min(blocks.end * BLOCK));
        let mut at = start;
        while at < end {
            let data = self.data_in(at..end);
            self.view.read(data.start as u64, &mut self.bytes[data.clone()])?;
            at = data.end;
        }
        self.copied[blocks].fill(true);
        Ok(())
    }

    /// Where the next data of a range is, up to the next hole. Holes of a file are zero in the copy
    /// without being read: a file can be much longer than what it takes on a disk, or in memory.
    fn data_in(&self, range: Range<usize>) -> Range<usize> {
        if !self.may_have_holes {
            return range;
        }
        let find = |from: SeekFrom| match seek(&self.pool, from) {
            Ok(found) => usize::try_from(found).unwrap_or(range.end),
            Err(Errno::NXIO) => range.end,
            // A file system without holes.
            Err(_) if matches!(from, SeekFrom::Data(_)) => range.start,
            Err(_) => range.end,
        };
        let start = find(SeekFrom::Data(range.start as u64)).clamp(range.start, range.end);
        let end = find(SeekFrom::Hole(start as u64)).clamp(start, range.end);
        start..end
    }

    /// Where constants are. What is no such file, or breaks off, has none behind.
    fn constants(&mut self) -> Vec<Range<usize>> {
        let mut constants = Vec::new();
        // Whoever copies the rest learns why something cannot be read.
        let _ = self.find_constants(&mut constants);
        constants
    }

    /// `None` where the file breaks off.
    fn find_constants(&mut self, found: &mut Vec<Range<usize>>) -> Option<()> {
        let model = self.follow(0)?;
        let buffers = self.field(model, MODEL_BUFFERS)?;
        let buffers = self.follow(buffers)?;
        let count = u32::from_le_bytes(self.number(buffers)?) as usize;
        for index in 0..count.min(MOST_CONSTANTS) {
            let buffer = self.follow(buffers.checked_add(4 * (index + 1))?)?;
            let range = if let Some(data) = self.field(buffer, BUFFER_DATA) {
                let vector = self.follow(data)?;
                let length = u32::from_le_bytes(self.number(vector)?) as usize;
                vector + 4..(vector + 4).checked_add(length)?
            } else if let Some(offset) = self.field(buffer, BUFFER_OFFSET)
                && let Some(size) = self.field(buffer, BUFFER_SIZE)
            {
                // Behind the tables, as in files beyond 2 GiB.
                let start = usize::try_from(u64::from_le_bytes(self.number(offset)?)).ok()?;
                let length = usize::try_from(u64::from_le_bytes(self.number(size)?)).ok()?;
                start..start.checked_add(length)?
            } else {
                continue;
            };
            if range.end <= self.bytes.len() {
                found.push(range);
            }
        }
        Some(())
    }

    /// Where the offset at this place leads to.
    fn follow(&mut self, at: usize) -> Option<usize> {
        at.checked_add(u32::from_le_bytes(self.number(at)?) as usize)
    }

    /// Where a field of a table is, if the table has it.
    fn field(&mut self, table: usize, index: usize) -> Option<usize> {
        let back = i32::from_le_bytes(self.number(table)?);
        let description = table.checked_add_signed((back as isize).checked_neg()?)?;
        let length = u16::from_le_bytes(self.number(description)?) as usize;
        let entry = 4 + 2 * index;
        if entry + 2 > length {
            return None;
        }
        let offset = u16::from_le_bytes(self.number(description.checked_add(entry)?)?);
        if offset == 0 { None } else { table.checked_add(offset.into()) }
    }

    /// The bytes of a number, copied if they are not yet.
    fn number<const COUNT: usize>(&mut self, at: usize) -> Option<[u8; COUNT]> {
        let end = at.checked_add(COUNT).filter(|end| *end <= self.bytes.len())?;
        for block in at / BLOCK..end.div_ceil(BLOCK) {
            if !self.copied[block] {
                self.copy(block..block + 1).ok()?;
            }
        }
        self.bytes[at..].first_chunk().copied()
    }
}
