//! [`Panels`]: the right side of a matrix product, in the order in which tiles read it.
#![allow(unsafe_code)]

use super::Blocking;
use super::matrix::Matrix;
use super::pack::{panel_until, turned_until};
use crate::allowance::room_for;
use crate::disjoint::DisjointOutput;
use crate::preparation::{PackedValues, product};
use crate::team::Pace;
use crate::vector::Isa;
use crate::{Preparation, Team, TooLarge};
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use std::ops::Range;

/// Columns `[group, depth, group_columns]` with their biases, cut into panels as wide as a tile. A
/// panel is the biases of its columns, and then a row of them for each value of the depth. The last
/// panel of a group may be narrower, by whole vectors; columns beyond the group's are zero.
#[derive(Debug, Clone)]
pub(crate) struct Panels {
    blocking: Blocking,
    depth: usize,
    groups: usize,
    group_columns: usize,
    /// None of columns that are known only when they are multiplied.
    values: Option<PackedValues<f32>>,
}

/// Columns that are packed at run time: weights `[groups, group_columns, depth]`, or if they are by
/// rows `[depth, columns]`, and a bias for each column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacked<'a> {
    pub(crate) weights: &'a [f32],
    pub(crate) are_rows: bool,
    pub(crate) bias: &'a [f32],
}

/// What it takes to find a weight anywhere in memory, in multiplications.
const LOOK: usize = 4;

/// One of the panels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Panel {
    pub(crate) group: usize,
    /// The columns, counted through all groups.
    pub(crate) columns: Range<usize>,
    /// How many vectors wide it is.
    pub(crate) vectors: usize,
    /// Where it begins, in values.
    start: usize,
}

impl Panels {
    /// Packs `weight(column, depth)` and `bias(column)`, columns counted through all groups. For weights
    /// that are stored row by row.
    pub(crate) fn pack(
        preparation: &mut Preparation,
        blocking: Blocking,
        depth: usize,
        columns: [usize; 2],
        bias: impl Fn(usize) -> f32,
        weight: impl Fn(usize, usize) -> f32,
    ) -> Result<Self, TooLarge> {
        Self::pack_by(preparation, blocking, depth, columns, bias, |panel, width, rows, pace| {
            for (k, row) in rows.chunks_exact_mut(width).enumerate() {
                if pace.is_over(LOOK * width) {
                    return;
                }
                for (to, column) in row.iter_mut().zip(panel.columns.clone()) {
                    *to = weight(column, k);
                }
            }
        })
    }

    /// Panels that are [filled](Self::fill) at run time.
    pub(crate) fn at_run_time(
        blocking: Blocking,
        depth: usize,
        [groups, group_columns]: [usize; 2],
    ) -> Result<Self, TooLarge> {
        let width = group_columns.checked_next_multiple_of(blocking.lanes);
        let rows = depth.checked_add(1);
        let values = width.zip(rows).and_then(|(width, rows)| product(&[width, rows, groups]));
        let fits = |values: usize| values < isize::MAX.unsigned_abs() / size_of::<f32>();
        if !values.is_some_and(fits) {
            return Err(TooLarge::beyond_addresses("packed weights"));
        }
        Ok(Self { blocking, depth, groups, group_columns, values: None })
    }

    /// Packs a bias for each column, and rows, which are so wide, that `rows` fills for each panel: those of the same columns of
    /// all groups one after the other, beginning with the first group's.
    pub(crate) fn pack_by(
        preparation: &mut Preparation,
        blocking: Blocking,
        depth: usize,
        columns: [usize; 2],
        bias: impl Fn(usize) -> f32,
        mut rows: impl FnMut(&Panel, usize, &mut [f32], &mut Pace<'_>),
    ) -> Result<Self, TooLarge> {
        let panels = Self::at_run_time(blocking, depth, columns)?;
        let by_group = panels.panels_of_group();
        let values = preparation.pack(panels.count_values(), |values: &mut [f32], pace| {
            for index in (0..by_group)
                .flat_map(|first| (0..panels.groups).map(move |group| group * by_group + first))
            {
                let panel = panels.panel(index);
                let width = panels.width(&panel);
                let values = &mut values[panel.start..][..panels.panel_values(&panel)];
                let (biases, of_rows) = values.split_at_mut(width);
                for (to, column) in biases.iter_mut().zip(panel.columns.clone()) {
                    *to = bias(column);
                }
                rows(&panel, width, of_rows, pace);
            }
        })?;
        Ok(Self { values: Some(values), ..panels })
    }

    /// Packs columns, each panel by one thread.
    ///
    /// # Panics
    /// If there are fewer weights or biases, or less room than [`Self::count_values`].
    pub(crate) fn fill(&self, isa: Isa, team: &mut Team, columns: Unpacked<'_>, to: &mut [f32]) {
        let Unpacked { weights, are_rows, bias } = columns;
        let depth = self.depth;
        assert_eq!(weights.len(), self.columns() * depth, "values of the weights");
        assert_eq!(bias.len(), self.columns(), "values of the bias");
        let stride = if are_rows { self.columns() } else { depth };
        let matrix = Matrix { values: weights, start: 0, stride };
        let to = DisjointOutput::new(to);
        team.run_long(self.count(), &|index, stop| {
            let mut pace = Pace::new(stop);
            let panel = self.panel(index);
            let width = self.width(&panel);
            // SAFETY: panels do not overlap.
            let values = unsafe { to.slice(panel.start, self.panel_values(&panel)) };
            let (biases, rows) = values.split_at_mut(width);
            let (of_columns, rest) = biases.split_at_mut(panel.columns.len());
            of_columns.copy_from_slice(&bias[panel.columns.clone()]);
            rest.fill(0.0);
            let (matrix, columns) = ((&matrix, !are_rows), (panel.columns, width));
            panel_until(&mut pace, isa, matrix, depth, columns, rows);
        });
    }

    /// Packs columns `[groups, group_columns, depth]`, each in one piece, and a bias for each.
    pub(crate) fn pack_columns(
        preparation: &mut Preparation,
        blocking: Blocking,
        depth: usize,
        columns: [usize; 2],
        bias: impl Fn(usize) -> f32,
        values: &[f32],
    ) -> Result<Self, TooLarge> {
        let isa = Isa::of(preparation.set());
        let matrix = Matrix { values, start: 0, stride: depth };
        Self::pack_by(preparation, blocking, depth, columns, bias, |panel, width, rows, pace| {
            turned_until(pace, isa, &matrix, panel.columns.clone(), depth, [width; 2], rows);
        })
    }

    /// The weights of panels that are not packed, `[groups, group_columns, depth]`, as float16. Each
    /// panel's are [where they would be](Self::weights).
    pub(crate) fn pack_halves(
        &self,
        preparation: &mut Preparation,
        weights: &[f32],
    ) -> Result<PackedValues<u16>, TooLarge> {
        let isa = Isa::of(preparation.set());
        let depth = self.depth;
        let matrix = Matrix { values: weights, start: 0, stride: depth };
        let widest = self.all().map(|panel| self.width(&panel)).max().unwrap_or(0);
        let mut rows = room_for(depth * widest, "weights")?;
        preparation.pack(self.count_values(), |halves: &mut [u16], pace| {
            for panel in self.all() {
                let (width, columns) = (self.width(&panel), panel.columns.clone());
                rows.resize(depth * width, 0.0);
                turned_until(pace, isa, &matrix, columns, depth, [width; 2], &mut rows);
                let halves: &mut [f16] = halves[self.weights(&panel)].reinterpret_cast_mut();
                for block in pace.blocks(rows.len(), 1) {
                    halves[block.clone()].convert_from_f32_slice(&rows[block]);
                }
            }
        })
    }

    /// # Panics
    /// If these are not panels of such columns, cut for such tiles.
    pub(crate) fn check(&self, blocking: Blocking, depth: usize, columns: [usize; 2]) {
        assert_eq!(self.blocking, blocking, "panels for other tiles");
        assert_eq!(
            (self.depth, [self.groups, self.group_columns]),
            (depth, columns),
            "panels of another matrix"
        );
    }

    /// How many panels there are, of all groups.
    pub(crate) fn count(&self) -> usize {
        self.groups * self.panels_of_group()
    }

    fn panels_of_group(&self) -> usize {
        self.group_columns.div_ceil(self.blocking.columns())
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn blocking(&self) -> Blocking {
        self.blocking
    }

    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Columns of all groups.
    pub(super) fn columns(&self) -> usize {
        self.groups * self.group_columns
    }

    pub(crate) fn panel(&self, index: usize) -> Panel {
        let width = self.blocking.columns();
        // Of one group nothing is divided: there are panels of a few nanoseconds.
        let (group, first, before) = match self.groups {
            1 => (0, index * width, 0),
            _ => {
                let by_group = self.panels_of_group();
                let group = index / by_group;
                let before = group * self.group_columns.next_multiple_of(self.blocking.lanes);
                (group, index % by_group * width, before)
            }
        };
        let column = group * self.group_columns + first;
        self.panel_at(group, column, (1 + self.depth) * (before + first))
    }

    /// The panel of a group that begins at a column, counted through all groups, and at this one of all values.
    fn panel_at(&self, group: usize, column: usize, start: usize) -> Panel {
        let Blocking { vectors, lanes, .. } = self.blocking;
        let width = self.blocking.columns();
        let columns = width.min((group + 1) * self.group_columns - column);
        let vectors = if columns == width { vectors } else { columns.div_ceil(lanes) };
        Panel { group, columns: column..column + columns, vectors, start }
    }

    /// All panels.
    fn all(&self) -> impl Iterator<Item = Panel> {
        (0..self.count()).map(|index| self.panel(index))
    }

    /// Some panels, as many together as are whole and follow each other, `most` of them.
    pub(crate) fn runs(&self, panels: Range<usize>, most: usize) -> Runs<'_> {
        let by_group = self.panels_of_group();
        Runs {
            panels: self,
            left: panels.len(),
            most: most.max(1),
            next: self.panel(panels.start),
            left_of_group: by_group - panels.start % by_group,
        }
    }

    /// Values of all panels: a product that was checked when they were made.
    pub(crate) fn count_values(&self) -> usize {
        let width = self.group_columns.next_multiple_of(self.blocking.lanes);
        (self.depth + 1) * width * self.groups
    }

    /// Values of a panel.
    fn panel_values(&self, panel: &Panel) -> usize {
        (1 + self.depth) * self.width(panel)
    }

    /// Values of a row of a panel.
    pub(crate) fn width(&self, panel: &Panel) -> usize {
        panel.vectors * self.blocking.lanes
    }

    /// Where the weights of a panel are among all values.
    pub(crate) fn weights(&self, panel: &Panel) -> Range<usize> {
        panel.start + self.width(panel)..panel.start + self.panel_values(panel)
    }

    /// The biases of a panel, and its rows of weights.
    pub(crate) fn split(&self, panel: &Panel) -> (&[f32], &[f32]) {
        self.values(panel).split_at(self.width(panel))
    }

    /// The values of a panel.
    pub(crate) fn values(&self, panel: &Panel) -> &[f32] {
        self.values_of(self.all_values(), panel)
    }

    /// The values of panels side by side, from `first` to `last`, out of those of all.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn values_from_to<'a>(
        &self,
        all: &'a [f32],
        first: &Panel,
        last: &Panel,
    ) -> &'a [f32] {
        let end = last.start + self.panel_values(last);
        assert!(end <= all.len(), "{} and not {end} values of the panels", all.len());
        &all[first.start..end]
    }

    /// The values of all panels of a run, out of those of all.
    pub(crate) fn values_of_run<'a>(&self, all: &'a [f32], run: &Run) -> &'a [f32] {
        &all[run.first.start..][..run.count * self.panel_values(&run.first)]
    }

    /// The values of all panels; nothing of columns that are packed at run time.
    pub(crate) fn all_values(&self) -> &[f32] {
        self.values.as_ref().map_or(&[], PackedValues::values)
    }

    /// The values of a panel, out of those of all.
    pub(crate) fn values_of<'a>(&self, all: &'a [f32], panel: &Panel) -> &'a [f32] {
        &all[panel.start..][..self.panel_values(panel)]
    }
}

/// Panels side by side that are whole, or a narrower one.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) first: Panel,
    pub(crate) count: usize,
}

/// See [`Panels::runs`]. Nothing is divided on the way: there are runs of a few nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Runs<'a> {
    panels: &'a Panels,
    left: usize,
    most: usize,
    /// The first panel of the next run, if there is one.
    next: Panel,
    /// Panels of its group from there on.
    left_of_group: usize,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        if self.left == 0 {
            return None;
        }
        let Panels { blocking, group_columns, .. } = *self.panels;
        let width = blocking.columns();
        let first = self.next.clone();
        let is_whole = first.columns.len() == width;
        // The last one of a group may be narrower.
        let of_group = first.group * group_columns + group_columns - first.columns.start;
        let is_even = self.left_of_group * width == of_group;
        let whole = if is_even { self.left_of_group } else { self.left_of_group - 1 };
        let count = if is_whole { whole.min(self.left).min(self.most) } else { 1 };
        self.left -= count;
        self.left_of_group -= count;
        let start = first.start + count * self.panels.panel_values(&first);
        let (mut group, mut column) = (first.group, first.columns.end + (count - 1) * width);
        if self.left_of_group == 0 && self.left > 0 {
            group += 1;
            column = group * group_columns;
            self.left_of_group = self.panels.panels_of_group();
        }
        self.next = self.panels.panel_at(group, column, start);
        Some(Run { first, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;

    #[test]
    #[allow(clippy::cast_precision_loss)] // Small numbers.
    fn panels_follow_each_other_and_end_narrow() {
        let blocking = Blocking { rows: 1, vectors: 2, lanes: 4 };
        let bias = |column: usize| 100.0 + column as f32;
        let weight = |column: usize, depth: usize| (column * 2 + depth) as f32;
        let mut preparation = Preparation::new(InstructionSet::Portable, 1);
        let panels = Panels::pack(&mut preparation, blocking, 2, [2, 11], bias, weight).unwrap();
        drop(preparation);
        assert_eq!((panels.count(), panels.columns()), (4, 22));
        let last = panels.panel(3);
        assert_eq!((last.group, last.columns.clone(), last.vectors), (1, 19..22, 1));
        assert_eq!(
            panels.values(&last),
            [119., 120., 121., 0., 38., 40., 42., 0., 39., 41., 43., 0.]
        );
        let values: Vec<f32> =
            (0..22).flat_map(|column| [weight(column, 0), weight(column, 1)]).collect();
        let mut preparation = Preparation::new(InstructionSet::best(), 1);
        let same =
            Panels::pack_columns(&mut preparation, blocking, 2, [2, 11], bias, &values).unwrap();
        drop(preparation);
        assert_eq!(same.all_values(), panels.all_values());
        let mut end = 0;
        for panel in panels.all() {
            assert_eq!(panel.start, end);
            end += panels.values(&panel).len();
        }
    }

    #[test]
    fn runs_are_all_panels_once() {
        let blocking = Blocking { rows: 1, vectors: 2, lanes: 4 };
        for (groups, group_columns) in [(1, 8), (1, 40), (1, 43), (1, 3), (3, 3), (2, 16), (3, 29)]
        {
            let panels = Panels::at_run_time(blocking, 5, [groups, group_columns]).unwrap();
            for range in (0..panels.count()).flat_map(|a| (a..=panels.count()).map(move |b| a..b)) {
                for most in [1, 2, 100] {
                    let mut next = range.start;
                    for Run { first, count } in panels.runs(range.clone(), most) {
                        assert!((1..=most).contains(&count));
                        for index in 0..count {
                            let panel = panels.panel(next);
                            assert!(count == 1 || panel.columns.len() == blocking.columns());
                            assert_eq!(panel.group, first.group);
                            assert_eq!(panel.vectors, first.vectors);
                            assert_eq!(
                                panel.start,
                                first.start + index * panels.panel_values(&first)
                            );
                            let column = first.columns.start + index * blocking.columns();
                            assert_eq!(panel.columns.start, column);
                            next += 1;
                        }
                    }
                    assert_eq!(next, range.end.max(range.start));
                }
            }
            let whole = panels.runs(0..panels.count(), 100).count();
            let of_group = usize::from(group_columns >= 8) + usize::from(group_columns % 8 > 0);
            assert_eq!(whole, groups * of_group, "{groups} groups of {group_columns}");
        }
    }
}
