//! Memory that is a file: whoever gives it to us decides how long it takes to read and write, for
//! instance by a file system of their own. So no slot is held meanwhile, or others would wait too.
//!
//! - A request's inputs are copied before its execution takes a slot, and its outputs when it has given
//!   the slot up (`Bindings::keep_files_out`).
//! - A model's constants are copied before it is compiled, unless they are on a disk of this
//!   machine, where engines read them piece by piece without another copy.

use crate::error::{EngineError, MemoryUse};
use crate::memory::{Charge, Ledger};
use nnhal_hal::{Memory, Model, OperandLifeTime};
use rustix::fs::fstatfs;
use std::borrow::Cow;
use std::ops::Range;

/// File systems of which the kernel reads disks and memory of this machine, by the first 32 bits of
/// what `statfs` calls their type.
const LOCAL: [u32; 8] = [
    0x0000_EF53, // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0xE0F5_E1E2, // EROFS
    0x7371_7368, // SquashFS
    0x0102_1994, // tmpfs, where memfds are
    0x9584_58F6, // hugetlbfs
];

/// Whether reading takes no longer than this machine's disks do.
fn is_local(memory: &Memory) -> bool {
    let (fds, _) = memory.parts();
    let file_system = fds.first().and_then(|fd| fstatfs(fd).ok());
    file_system.is_some_and(|file_system| {
        let [a, b, c, d, ..] = file_system.f_type.to_le_bytes();
        LOCAL.contains(&u32::from_le_bytes([a, b, c, d]))
    })
}

/// The model with copies of constants that are in files elsewhere; the charge counts the copies.
/// What cannot be read is left as it is, for whoever reads it.
///
/// # Errors
/// [`EngineError::MemoryLimit`]
pub(crate) fn with_copied_pools<'model>(
    model: &'model Model,
    ledger: &Ledger,
) -> Result<(Cow<'model, Model>, Charge), EngineError> {
    copied(model, ledger, is_local)
}

fn copied<'model>(
    model: &'model Model,
    ledger: &Ledger,
    is_local: impl Fn(&Memory) -> bool,
) -> Result<(Cow<'model, Model>, Charge), EngineError> {
    let mut charge = ledger.charge(0, MemoryUse::Constants)?;
    let mut model = Cow::Borrowed(model);
    for index in 0..model.pools.len() {
        let pool = &model.pools[index];
        let is_quick = pool.view().is_ok_and(|view| view.is_mapped()) || is_local(pool);
        if is_quick {
            continue;
        }
        let ranges = used_ranges(&model, index);
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        charge.grow(bytes, MemoryUse::Constants)?;
        if let Some(copy) = copy_of(pool, &ranges) {
            model.to_mut().pools[index] = copy;
        }
    }
    Ok((model, charge))
}

/// The bytes of a pool that constants have, in order, none twice.
fn used_ranges(model: &Model, pool: usize) -> Vec<Range<u64>> {
    let operands = model.subgraphs().flat_map(|(_, subgraph)| &subgraph.operands);
    let constants = operands.filter(|operand| {
        operand.lifetime == OperandLifeTime::ConstantReference
            && operand.location.pool_index as usize == pool
    });
    let mut ranges: Vec<Range<u64>> = constants
        .map(|constant| u64::from(constant.location.offset)..constant.location.end())
        .collect();
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next, range| {
        let touches = next.start <= range.end;
        if touches {
            range.end = range.end.max(next.end);
        }
        touches
    });
    ranges
}

/// Memory as long as another one with these bytes of it; it takes up no more than those.
fn copy_of(pool: &Memory, ranges: &[Range<u64>]) -> Option<Memory> {
    let copy = Memory::allocate(pool.size()).ok()?;
    let (from, to) = (pool.view().ok()?, copy.view().ok()?);
    for range in ranges {
        to.copy_from(range.start, &from, range.start, range.end - range.start).ok()?;
    }
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::memory::Protection;
    use nnhal_hal::{ModelBuilder, OperandSpec, OperationType, SubgraphBuilder};
    use std::os::unix::fs::FileExt;

    /// Adds constants of a file of 1 MB to an input: bytes 8..24 and 20..36.
    fn model(file: &std::fs::File) -> Model {
        let fd = file.try_clone().unwrap().into();
        let pool = Memory::from_file(fd, Protection::READ, 0, 1 << 20).unwrap();
        let mut builder = ModelBuilder::new();
        let pool = builder.pool(pool);
        let mut graph = SubgraphBuilder::new();
        let spec = OperandSpec::tensor_float32([4]);
        let none = graph.scalar_i32(0);
        let mut x = graph.input("x", spec.clone());
        for offset in [20, 8] {
            let constant = graph.constant_in_pool(spec.clone(), pool, offset, 16);
            x = graph.operation(OperationType::Add, [x, constant, none], spec.clone());
        }
        graph.output(x);
        builder.build(graph).unwrap()
    }

    fn file() -> std::fs::File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[7; 64], 0).unwrap();
        file
    }

    #[test]
    fn constants_in_files_elsewhere_are_copied_once() {
        let (file, ledger) = (file(), Ledger::with_process_limit(100));
        let model = model(&file);
        let (copied, charge) = copied(&model, &ledger, |_| false).unwrap();
        assert_eq!(charge.bytes(), 28);
        file.write_all_at(&[9; 64], 0).unwrap();
        let view = copied.pools[0].view().unwrap();
        assert!(view.is_mapped());
        assert_eq!(view.size(), 1 << 20);
        assert_eq!(view.read_to_vec(8, 28).unwrap(), [7; 28]);
        // The rest is not wanted.
        assert_eq!(view.read_to_vec(36, 8).unwrap(), [0; 8]);
    }

    #[test]
    fn constants_on_disks_of_this_machine_stay_there() {
        let (file, ledger) = (file(), Ledger::with_process_limit(0));
        let model = model(&file);
        let (same, _) = copied(&model, &ledger, |_| true).unwrap();
        assert!(matches!(same, Cow::Borrowed(_)));
        let error = copied(&model, &ledger, |_| false).unwrap_err();
        assert!(matches!(error, EngineError::MemoryLimit { wanted: 28, .. }), "{error}");
        // Memory is in memory.
        assert!(is_local(&Memory::allocate(10).unwrap()));
    }
}
