//! [`TileRows`]: which rows the tiles of a product have.

use crate::team::part;
use std::ops::Range;

/// The rows of some tiles: of each line first those of the tiles that have one more than the others. Nothing is divided on the
/// way: there are tiles of a few nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct TileRows {
    /// The tiles of later lines, and how many a line has.
    tiles: usize,
    tiles_by_line: usize,
    /// Rows of a tile, and of how many of a line's tiles there is one more.
    quotient: usize,
    remainder: usize,
    /// What is left of a line: the next row, the tiles that have one more, and the others.
    row: usize,
    larger: usize,
    smaller: usize,
    /// Rows of the last line, if only a part of its tiles is wanted.
    last: usize,
}

/// Tiles below each other, each of the same number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Below {
    /// The rows of the first one.
    pub(crate) rows: Range<usize>,
    pub(crate) tiles: usize,
}

impl TileRows {
    /// Of lines of this many rows, each cut into this number of tiles, these tiles. Together they have the rows of these
    /// [parts](part) of the lines, in another order.
    pub(crate) fn new(line: usize, tiles_by_line: usize, tiles: Range<usize>) -> Self {
        let first_row = |tile: usize| {
            let before = tile / tiles_by_line * line;
            before + part(line, tiles_by_line, tile % tiles_by_line).start
        };
        let quotient = line / tiles_by_line;
        let of_first = (tiles_by_line - tiles.start % tiles_by_line).min(tiles.len());
        let row = first_row(tiles.start);
        let larger = first_row(tiles.start + of_first) - row - of_first * quotient;
        let last_line = tiles.end - tiles.end % tiles_by_line;
        Self {
            tiles: tiles.len() - of_first,
            tiles_by_line,
            quotient,
            remainder: line % tiles_by_line,
            row,
            larger,
            smaller: of_first - larger,
            last: first_row(tiles.end) - first_row(last_line),
        }
    }

    /// The next tiles, this many at most, but one.
    pub(crate) fn next(&mut self, most: usize) -> Option<Below> {
        if self.larger + self.smaller == 0 {
            let tiles = self.tiles.min(self.tiles_by_line);
            if tiles == 0 {
                return None;
            }
            self.tiles -= tiles;
            self.larger = match tiles < self.tiles_by_line {
                true => self.last - tiles * self.quotient,
                false => self.remainder,
            };
            self.smaller = tiles - self.larger;
        }
        let (left, rows) = match self.larger {
            0 => (&mut self.smaller, self.quotient),
            _ => (&mut self.larger, self.quotient + 1),
        };
        let tiles = most.clamp(1, *left);
        *left -= tiles;
        let first = self.row;
        self.row += tiles * rows;
        Some(Below { rows: first..first + rows, tiles })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tiles_are_the_rows_of_their_parts(
            line in 1..100_usize,
            lines in 1..5_usize,
            tiles_by_line in 1..20_usize,
            [a, b] in [0.0..1.0_f64, 0.0..1.0],
            most in 1..5_usize,
        ) {
            let tiles_by_line = tiles_by_line.min(line);
            let all = lines * tiles_by_line;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let [a, b] = [a, b].map(|at| (at * all as f64) as usize);
            let range = a.min(b)..a.max(b) + 1;
            let of_part = |tile: usize| {
                let of_line = part(line, tiles_by_line, tile % tiles_by_line);
                let start = tile / tiles_by_line * line;
                start + of_line.start..start + of_line.end
            };
            let mut next = of_part(range.start).start;
            let mut count = 0;
            let mut tiles = TileRows::new(line, tiles_by_line, range.clone());
            while let Some(Below { rows, tiles }) = tiles.next(most) {
                prop_assert!((1..=most).contains(&tiles));
                for index in 0..tiles {
                    let rows = rows.start + index * rows.len()..rows.end + index * rows.len();
                    prop_assert_eq!(rows.start, next);
                    prop_assert!(rows.len().abs_diff(line / tiles_by_line) <= 1);
                    prop_assert!(rows.len() <= line.div_ceil(tiles_by_line));
                    prop_assert_eq!(rows.start / line, (rows.end - 1) / line, "of one line");
                    next = rows.end;
                    count += 1;
                }
            }
            prop_assert_eq!(count, range.len());
            prop_assert_eq!(next, of_part(range.end - 1).end);
        }
    }
}
