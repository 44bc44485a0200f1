//! AMX: whether there is a use of its tiles, and [`TileRegisters`], which are set up for a thread while it
//! multiplies.
//!
//! The processor has eight registers of 16 rows of 64 bytes. Their names, shapes and instructions are described in
//! Intel's "Architectures Software Developer's Manual", volume 1, chapter 18; that a program has to ask Linux
//! for them, in its documentation of `ARCH_REQ_XCOMP_PERM` (`Documentation/arch/x86/xstate.rst`). Rust has no stable
//! functions for them yet, but assembles the instructions.
#![allow(unsafe_code)]

use bytemuck::Zeroable;
use std::arch::asm;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Rows of a tile.
pub(crate) const TILE_ROWS: usize = 16;

/// Bytes of a row of a tile: the depth of a product, or 16 sums.
pub(crate) const ROW_BYTES: usize = 64;

/// Registers of tiles.
const TILES: usize = 8;

/// Whether the processor has AMX for 8-bit numbers, and the system lets this process use it: that is asked for
/// once, and then holds for all threads.
pub(crate) fn is_available() -> bool {
    static IS_AVAILABLE: OnceLock<bool> = OnceLock::new();
    *IS_AVAILABLE.get_or_init(|| has_instructions() && ask_system())
}

/// Whether AMX is also for bfloat16.
pub(crate) fn multiplies_bfloat16() -> bool {
    const LEAF_OF_FEATURES: u32 = 7;
    const AMX_BF16: u32 = 1 << 22;
    static MULTIPLIES: OnceLock<bool> = OnceLock::new();
    let has_instruction =
        || std::arch::x86_64::__cpuid_count(LEAF_OF_FEATURES, 0).edx & AMX_BF16 != 0;
    *MULTIPLIES.get_or_init(|| is_available() && has_instruction())
}

/// Whether the processor has the instructions, with tiles that are as large as is taken for granted here.
fn has_instructions() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const LEAF_OF_FEATURES: u32 = 7;
    const LEAF_OF_TILES: u32 = 0x1D;
    const AMX_TILE: u32 = 1 << 24;
    const AMX_INT8: u32 = 1 << 25;
    if __cpuid(0).eax < LEAF_OF_TILES {
        return false;
    }
    let features = __cpuid_count(LEAF_OF_FEATURES, 0).edx;
    // Of the first palette: bytes of a tile, and of a row, and how many there are of both.
    let palette = __cpuid_count(LEAF_OF_TILES, 1);
    let bytes = [palette.eax >> 16, palette.ebx & 0xFFFF].map(|size| size as usize);
    let counts = [palette.ebx >> 16, palette.ecx & 0xFFFF].map(|count| count as usize);
    features & (AMX_TILE | AMX_INT8) == AMX_TILE | AMX_INT8
        && bytes == [TILE_ROWS * ROW_BYTES, ROW_BYTES]
        && counts[0] >= TILES
        && counts[1] >= TILE_ROWS
}

/// Whether the system saves tiles, and has been asked to.
///
/// It says no where signals are handled on a stack that would be too small with tiles.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn ask_system() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: the call has two numbers, and changes nothing but what is saved of registers. A system that does not
    // know it returns an error.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn ask_system() -> bool {
    false
}

/// What `ldtilecfg` reads: of 16 tiles, of which the processor has the first half.
#[derive(Zeroable)]
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; TILES],
    no_row_bytes: [u16; TILES],
    rows: [u8; TILES],
    no_rows: [u8; TILES],
}

/// All tiles as large as there are.
#[allow(clippy::cast_possible_truncation)] // Known numbers.
static FULL_TILES: Configuration = Configuration {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [ROW_BYTES as u16; TILES],
    no_row_bytes: [0; TILES],
    rows: [TILE_ROWS as u8; TILES],
    no_rows: [0; TILES],
};

/// The tiles of this thread, all of full size. Setting them up takes as long as some products, so it is done for
/// many of them together. They are released at the end: then the system need not save them.
#[derive(Debug)]
pub(crate) struct TileRegisters {
    /// Of this thread alone.
    of_thread: PhantomData<*const ()>,
}

impl TileRegisters {
    /// Sets them up.
    ///
    /// # Panics
    /// If there are none to be used.
    pub(crate) fn set_up() -> Self {
        assert!(is_available(), "there is no use of AMX here");
        // SAFETY: there are tiles, as was just seen. The configuration has 64 bytes and is one that the processor
        // takes. No code that is compiled keeps anything in tiles.
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) &raw const FULL_TILES,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, readonly, preserves_flags)
            );
        }
        Self { of_thread: PhantomData }
    }

    /// Multiplies tiles of zeros and adds them to [`SUMS`] others, this many times, to see how fast that is.
    pub(crate) fn multiply(&self, times: u32) {
        if times == 0 {
            return;
        }
        // SAFETY: the tiles are set up; nothing is read or written but tiles and a counter.
        unsafe {
            asm!(
                "tilezero tmm6",
                "tilezero tmm7",
                "2:",
                "tdpbusd tmm0, tmm6, tmm7",
                "tdpbusd tmm1, tmm6, tmm7",
                "tdpbusd tmm2, tmm6, tmm7",
                "tdpbusd tmm3, tmm6, tmm7",
                "tdpbusd tmm4, tmm6, tmm7",
                "tdpbusd tmm5, tmm6, tmm7",
                "dec {:e}",
                "jnz 2b",
                inout(reg) times => _,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, nomem)
            );
        }
    }
}

/// Tiles of sums of [`TileRegisters::multiply`].
pub(crate) const SUMS: u32 = 6;

impl Drop for TileRegisters {
    fn drop(&mut self) {
        // SAFETY: there are tiles, for they were set up; nothing is kept in them.
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, nomem, preserves_flags)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration that a thread has.
    fn stored() -> Configuration {
        let mut configuration = Configuration::zeroed();
        // SAFETY: there are tiles; 64 bytes are written.
        unsafe {
            asm!("sttilecfg [{}]", in(reg) &raw mut configuration, options(nostack, preserves_flags));
        }
        configuration
    }

    #[test]
    fn tiles_are_released_with_their_value() {
        if !is_available() {
            eprintln!("not tried: there is no use of AMX here");
            return;
        }
        for _ in 0..2 {
            let tiles = TileRegisters::set_up();
            let Configuration { palette, row_bytes, rows, no_row_bytes, no_rows, .. } = stored();
            assert_eq!((palette, row_bytes[7], rows[7]), (1, 64, 16));
            assert_eq!((no_row_bytes[0], no_rows[0]), (0, 0));
            drop(tiles);
            assert_eq!(stored().palette, 0);
        }
    }
}
