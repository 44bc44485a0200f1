//! Products of the parts of tiles of rows and columns.
#![allow(unsafe_code)]

use super::parts::{OF_STEP, PAIR};
use crate::LINE_BYTES;
use crate::amx::{ROW_BYTES, TileRegisters};
use std::arch::asm;

/// Cache lines of the next block's weights that are asked for in each step, in which there are twice as many.
pub(super) const LINES_AHEAD: usize = OF_STEP * size_of::<u16>() / LINE_BYTES / PAIRS_AHEAD;

/// Pairs of tiles of rows that ask for the next block's weights.
pub(super) const PAIRS_AHEAD: usize = 2;

/// Of a pair of tiles of rows and one of columns, row by row.
#[repr(C, align(64))]
pub(super) struct Sums(pub(super) [f32; PAIR * PAIR]);

/// Multiplies the parts of one or two tiles of rows by those of two tiles of columns, of this number of steps, at least one,
/// and stores the sums. Meanwhile asks for [`LINES_AHEAD`] lines of a third place in each step.
///
/// # Safety
/// There are the parts of a pair of tiles of both for each step.
pub(super) unsafe fn multiply_tiles<const TILES: usize>(
    _: &TileRegisters,
    (rows, columns, ahead): (*const u16, *const u16, *const u8),
    steps: usize,
    sums: &mut Sums,
) {
    debug_assert!(steps > 0);
    // SAFETY: the caller's promises; the tiles are set up, as there are registers of them.
    unsafe {
        asm!(
            ".macro if_two_tiles instruction:vararg",
            ".if {TILES} > 1",
            "\\instruction",
            ".endif",
            ".endm",
            ".macro load_rows part",
            "tileloadd tmm4, [{rows} + {line} + 2048 * \\part]",
            "if_two_tiles tileloadd tmm5, [{rows} + {line} + 2048 * \\part + 1024]",
            ".endm",
            ".macro load_columns part",
            "tileloadd tmm6, [{columns} + {line} + 2048 * \\part]",
            "tileloadd tmm7, [{columns} + {line} + 2048 * \\part + 1024]",
            ".endm",
            ".macro multiply_parts",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "if_two_tiles tdpbf16ps tmm2, tmm5, tmm6",
            "if_two_tiles tdpbf16ps tmm3, tmm5, tmm7",
            ".rept 8",
            "prefetcht1 [{ahead}]",
            "add {ahead}, 64",
            ".endr",
            ".endm",
            "tilezero tmm0",
            "tilezero tmm1",
            "if_two_tiles tilezero tmm2",
            "if_two_tiles tilezero tmm3",
            "2:",
            "load_rows 0",
            "load_columns 2",
            "multiply_parts",
            "load_columns 1",
            "multiply_parts",
            "load_rows 1",
            "multiply_parts",
            "load_columns 0",
            "multiply_parts",
            "load_rows 2",
            "multiply_parts",
            "load_rows 0",
            "multiply_parts",
            "add {rows}, 6144",
            "add {columns}, 6144",
            "dec {steps}",
            "jnz 2b",
            "add {line}, {line}",
            "tilestored [{sums} + {line}], tmm0",
            "tilestored [{sums} + {line} + 64], tmm1",
            "if_two_tiles tilestored [{sums} + {line} + 2048], tmm2",
            "if_two_tiles tilestored [{sums} + {line} + 2112], tmm3",
            ".purgem if_two_tiles",
            ".purgem load_rows",
            ".purgem load_columns",
            ".purgem multiply_parts",
            TILES = const TILES,
            rows = inout(reg) rows => _,
            columns = inout(reg) columns => _,
            ahead = inout(reg) ahead => _,
            steps = inout(reg) steps => _,
            line = inout(reg) ROW_BYTES => _,
            sums = in(reg) &raw mut *sums,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack)
        );
    }
}
