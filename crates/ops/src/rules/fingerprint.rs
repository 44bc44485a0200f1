//! FarmHash's `Fingerprint64`, the hash function of LSH_PROJECTION.
//!
//! The function is defined by its original implementation (Geoff Pike, `farmhashna`), on bytes read
//! little endian. It is written anew here because the crate of that name (1.1.5) differs from the
//! original for 128, 192, 256 and more bytes.

use crate::call::Call;
use crate::error::Fault;

/// Odd numbers with many changes between bits, as the definition gives them.
const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// The fingerprint of any bytes.
///
/// # Errors
/// [`Fault::Interrupted`]
pub fn fingerprint64(call: &Call<'_>, bytes: &[u8]) -> Result<u64, Fault> {
    Ok(match bytes.len() {
        0..=16 => of_at_most_16(bytes),
        17..=32 => of_17_to_32(bytes),
        33..=64 => of_33_to_64(bytes),
        _ => of_more(call, bytes)?,
    })
}

/// The number in the 8 bytes from a position on.
fn read64(bytes: &[u8], from: usize) -> u64 {
    bytes[from..].first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// The number in the 4 bytes from a position on.
fn read32(bytes: &[u8], from: usize) -> u64 {
    bytes[from..].first_chunk().copied().map_or(0, u32::from_le_bytes).into()
}

fn fold(value: u64) -> u64 {
    value ^ (value >> 47)
}

/// Two numbers made one.
fn mix(a: u64, b: u64, factor: u64) -> u64 {
    let inner = fold((a ^ b).wrapping_mul(factor));
    fold((b ^ inner).wrapping_mul(factor)).wrapping_mul(factor)
}

/// `K2` plus twice the length.
fn factor_of(bytes: &[u8]) -> u64 {
    K2.wrapping_add(2 * bytes.len() as u64)
}

fn of_at_most_16(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let factor = factor_of(bytes);
    match length {
        0 => K2,
        1..=3 => {
            let byte = |index: usize| u64::from(bytes[index]);
            let front = byte(0) + (byte(length / 2) << 8);
            let back = length as u64 + (byte(length - 1) << 2);
            fold(front.wrapping_mul(K2) ^ back.wrapping_mul(K0)).wrapping_mul(K2)
        }
        4..=7 => mix(length as u64 + (read32(bytes, 0) << 3), read32(bytes, length - 4), factor),
        _ => {
            let front = read64(bytes, 0).wrapping_add(K2);
            let back = read64(bytes, length - 8);
            let c = back.rotate_right(37).wrapping_mul(factor).wrapping_add(front);
            let d = front.rotate_right(25).wrapping_add(back).wrapping_mul(factor);
            mix(c, d, factor)
        }
    }
}

/// What both middle lengths begin with: two numbers of the first 16 and the last 16 bytes.
fn ends(bytes: &[u8], first_factor: u64) -> (u64, u64, u64) {
    let (length, factor) = (bytes.len(), factor_of(bytes));
    let a = read64(bytes, 0).wrapping_mul(first_factor);
    let b = read64(bytes, 8);
    let c = read64(bytes, length - 8).wrapping_mul(factor);
    let d = read64(bytes, length - 16).wrapping_mul(K2);
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c);
    (a, y, mix(y, z, factor))
}

fn of_17_to_32(bytes: &[u8]) -> u64 {
    ends(bytes, K1).2
}

fn of_33_to_64(bytes: &[u8]) -> u64 {
    let (length, factor) = (bytes.len(), factor_of(bytes));
    let (a, y, z) = ends(bytes, K2);
    let e = read64(bytes, 16).wrapping_mul(factor);
    let f = read64(bytes, 24);
    let g = y.wrapping_add(read64(bytes, length - 32)).wrapping_mul(factor);
    let h = z.wrapping_add(read64(bytes, length - 24)).wrapping_mul(factor);
    let front = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    let back = e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g);
    mix(front, back, factor)
}

/// 56 bytes of state, which blocks of 64 bytes change one after the other.
struct State {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

impl State {
    /// Takes in a block. The last block, which may overlap the one before, weighs differently.
    fn take(&mut self, block: &[u8], factor: u64, weight: u64) {
        let at = |from| read64(block, from);
        let x = self.x.wrapping_add(self.y).wrapping_add(self.v.0).wrapping_add(at(8));
        let y = self.y.wrapping_add(self.v.1).wrapping_add(at(48));
        let x = x.rotate_right(37).wrapping_mul(factor) ^ self.w.1.wrapping_mul(weight);
        let y = y.rotate_right(42).wrapping_mul(factor);
        let y = y.wrapping_add(self.v.0.wrapping_mul(weight)).wrapping_add(at(40));
        let z = self.z.wrapping_add(self.w.0).rotate_right(33).wrapping_mul(factor);
        let v = half(block, self.v.1.wrapping_mul(factor), x.wrapping_add(self.w.0));
        let w = half(&block[32..], z.wrapping_add(self.w.1), y.wrapping_add(at(16)));
        *self = Self { x: z, y, z: x, v, w };
    }
}

/// 32 bytes and two numbers, made two.
fn half(bytes: &[u8], a: u64, b: u64) -> (u64, u64) {
    let at = |from| read64(bytes, from);
    let a = a.wrapping_add(at(0));
    let b = b.wrapping_add(a).wrapping_add(at(24)).rotate_right(21);
    let sum = a.wrapping_add(at(8)).wrapping_add(at(16));
    (sum.wrapping_add(at(24)), b.wrapping_add(sum.rotate_right(44)).wrapping_add(a))
}

fn of_more(call: &Call<'_>, bytes: &[u8]) -> Result<u64, Fault> {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let z = fold(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let x = SEED.wrapping_mul(K2).wrapping_add(read64(bytes, 0));
    let mut state = State { x, y, z, v: (0, 0), w: (0, 0) };
    // All blocks but the last, which is taken from the end, whole.
    let rest = (bytes.len() - 1) % 64;
    call.each(bytes[..bytes.len() - 1 - rest].chunks(64), |block| state.take(block, K1, 1))?;
    let factor = K1.wrapping_add((state.z & 0xFF) << 1);
    state.w.0 = state.w.0.wrapping_add(rest as u64);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    state.take(&bytes[bytes.len() - 64..], factor, 9);
    let State { x, y, z, v, w } = state;
    let front = mix(v.0, w.0, factor).wrapping_add(fold(y).wrapping_mul(K0)).wrapping_add(z);
    Ok(mix(front, mix(v.1, w.1, factor).wrapping_add(x), factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte `i` of `length` bytes is `7 * i + length`, modulo 256.
    #[allow(clippy::cast_possible_truncation)]
    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index * 7 + length) as u8).collect()
    }

    #[test]
    fn every_length_class_is_as_tensorflow_computes_it() {
        let call = Call::new(nnhal_hal::OperationType::LshProjection, [], []);
        // By `tf.raw_ops.Fingerprint(method="farmhash64")` of TensorFlow 2.21.
        let expected = [
            (1, 0x47a24c13b17e583e),
            (2, 0xf0c23b32303a63c2),
            (3, 0x40b4412e33eefd64),
            (4, 0xc107ef4cfd78de68),
            (7, 0xef296bc3f2781108),
            (8, 0xaf3c2feaecfb8228),
            (15, 0x319e0df4926db491),
            (16, 0x8935c33c50c919d8),
            (17, 0xeb5e445e8ed8468f),
            (31, 0xa6e1af36b767e2f2),
            (32, 0x37679234ee53fb79),
            (33, 0xace067ceef8b7acd),
            (48, 0x5aab4dbfabd61f8e),
            (63, 0xd0b2a6646c271569),
            (64, 0x99cef40b2c6f98ec),
            (65, 0x062c410b763bef3d),
            (127, 0x523ebfd89d1c476c),
            (128, 0xdbceebb7b5db6dc9),
            (129, 0x4651ad82f97e3ac7),
            (191, 0xfb94ed7d5320e62f),
            (192, 0x21fcdfc4e74ef3a2),
            (193, 0xc00468f778b34a7a),
            (256, 0xa7ffc9eb6db43723),
        ];
        for (length, fingerprint) in expected {
            assert_eq!(fingerprint64(&call, &bytes(length)), Ok(fingerprint), "{length} bytes");
        }
        assert_eq!(fingerprint64(&call, &[]), Ok(K2));
    }
}
