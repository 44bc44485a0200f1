//! Random numbers that a function makes of a key and a counter: Philox 4x32 with 10 rounds and Threefry 2x32 with 20.
//!
//! Definition: Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011.

/// The four words of a counter.
pub(super) fn philox(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
    let product = |a: u32, b: u32| {
        let [low, high] = split(u64::from(a) * u64::from(b));
        (high, low)
    };
    for _ in 0..10 {
        let [first, second, third, fourth] = counter;
        let (of_first, of_third) = (product(0xD251_1F53, first), product(0xCD9E_8D57, third));
        counter =
            [of_third.0 ^ second ^ key[0], of_third.1, of_first.0 ^ fourth ^ key[1], of_first.1];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// The two words of a counter.
pub(super) fn threefry(key: [u32; 2], [mut a, mut b]: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    (a, b) = (a.wrapping_add(keys[0]), b.wrapping_add(keys[1]));
    for round in 1..=5_u32 {
        for rotation in ROTATIONS[(round as usize + 1) % 2] {
            a = a.wrapping_add(b);
            b = b.rotate_left(rotation) ^ a;
        }
        let key = |after: u32| keys[(round + after) as usize % 3];
        (a, b) = (a.wrapping_add(key(0)), b.wrapping_add(key(1)).wrapping_add(round));
    }
    [a, b]
}

/// The lower and the upper half.
pub(super) fn split(number: u64) -> [u32; 2] {
    #[allow(clippy::cast_possible_truncation)] // These are its halves.
    [number as u32, (number >> 32) as u32]
}

/// The number with these halves.
pub(super) fn joined(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that the authors publish with their library Random123.
    #[test]
    fn known_answers() {
        let all = u32::MAX;
        assert_eq!(philox([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([all; 2], [all; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let expected = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(philox([0xa409_3822, 0x299f_31d0], pi), expected);
        assert_eq!(threefry([0; 2], [0; 2]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry([all; 2], [all; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        let expected = [0xc492_3a9c, 0x483d_f7a0];
        assert_eq!(threefry([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]), expected);
    }
}
