//! [`DetectionPostprocessing`].
#![allow(unsafe_code)]

use super::boxes::{Edges, edges};
use super::suppression::{Heap, Kept, candidate, parts, suppress};
use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::preparation::product;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::sharing::{Cut, for_each_rows};
use crate::team::{Pace, Team, WORK_BETWEEN};
use crate::top_k::rank;
use crate::vector::{Isa, Kernel, Simd};

/// Anchors from which on a second thread is worth waking.
const ANCHORS_OF_TASK: usize = 512;

/// Words that a box takes.
const BOX_WORDS: usize = 2;

/// How boxes with several classes compete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// For each class on its own.
    Regular {
        /// Most boxes of a class.
        class_limit: usize,
    },
    /// Once for all classes.
    Fast {
        /// Most classes of a box.
        classes_of_box: usize,
    },
}

/// Prepared `DETECTION_POSTPROCESSING`. Inputs: scores `[batch, anchors, classes]`, of which class 0 is the
/// background, deltas `[batch, anchors, numbers]` and anchors `[anchors, 4]`. Outputs: scores, boxes, classes and
/// numbers of the detections.
#[derive(Debug, Clone)]
pub struct DetectionPostprocessing {
    /// Of the vectors that search for highest scores.
    pub set: InstructionSet,
    /// Batch, anchors, classes, and numbers of a delta: 4 or more.
    pub sizes: [usize; 4],
    /// What dy, dx, dh and dw of a delta are divided by.
    pub scales: [f32; 4],
    /// How boxes compete.
    pub rule: Rule,
    /// Most boxes of an image.
    pub limit: usize,
    /// Only scores above it take part; 0 or more.
    pub score_threshold: f32,
    /// From this overlap on a box is dropped.
    pub overlap_threshold: f32,
    /// The label of class 1.
    pub first_label: i32,
    /// How many threads may take part.
    pub threads: usize,
}

/// Where detections go, by image; what is beyond their number becomes 0.
#[derive(Debug)]
pub struct Detections<'a> {
    /// Of each detection.
    pub scores: &'a mut [f32],
    /// Of each detection: upper, left, lower and right edge.
    pub boxes: &'a mut [f32],
    /// Of each detection.
    pub classes: &'a mut [i32],
    /// How many there are in each image.
    pub numbers: &'a mut [i32],
}

/// The detections of one image.
struct Image<'a> {
    scores: &'a mut [f32],
    boxes: &'a mut [f32],
    classes: &'a mut [i32],
    count: usize,
}

impl Image<'_> {
    /// One more detection.
    fn push(&mut self, score: f32, [x1, y1, x2, y2]: Edges, label: i32) {
        let at = self.count;
        self.scores[at] = score;
        self.boxes[4 * at..4 * at + 4].copy_from_slice(&[y1, x1, y2, x2]);
        self.classes[at] = label;
        self.count += 1;
    }
}

impl DetectionPostprocessing {
    /// For how many detections of an image there is room.
    pub fn room(&self) -> usize {
        match self.rule {
            Rule::Regular { .. } => self.limit,
            Rule::Fast { classes_of_box } => self.limit.saturating_mul(classes_of_box),
        }
    }

    /// Most boxes that are kept at a time.
    fn most_kept(&self) -> usize {
        let limit = match self.rule {
            Rule::Regular { class_limit } => class_limit,
            Rule::Fast { .. } => self.limit,
        };
        limit.min(self.sizes[1])
    }

    /// Words that each thread needs: candidates, what is kept of them, and their boxes.
    fn words_of_thread(&self) -> usize {
        let kept = (1 + BOX_WORDS).saturating_mul(self.most_kept());
        self.sizes[1].saturating_add(kept)
    }

    /// Words of 64 bits that running needs.
    pub fn scratch_words(&self) -> usize {
        let [_, anchors, classes, _] = self.sizes;
        match self.rule {
            Rule::Regular { .. } => {
                // All boxes; for each class what is kept, and that once more, to be put in order.
                let kept = classes.saturating_mul(self.most_kept()).saturating_mul(2);
                let of_threads = self.threads.max(1).saturating_mul(self.words_of_thread());
                BOX_WORDS.saturating_mul(anchors).saturating_add(kept).saturating_add(of_threads)
            }
            Rule::Fast { .. } => self.words_of_thread().saturating_add(classes),
        }
    }

    /// Computes the detections.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for, or there is too little scratch memory.
    pub fn run(
        &self,
        team: &mut Team,
        [scores, deltas, anchors]: [&[f32]; 3],
        output: Detections<'_>,
        scratch: &mut [u64],
    ) {
        let [batch, count, classes, numbers] = self.sizes;
        let room = self.room();
        assert!(numbers >= 4, "deltas of {numbers} numbers");
        assert_eq!(Some(scores.len()), product(&[batch, count, classes]), "scores of another size");
        assert_eq!(Some(deltas.len()), product(&[batch, count, numbers]), "deltas of another size");
        assert_eq!(Some(anchors.len()), product(&[count, 4]), "anchors of another size");
        let Detections { scores: out_scores, boxes, classes: labels, numbers: counts } = output;
        assert_eq!(Some(out_scores.len()), product(&[batch, room]), "room for other scores");
        assert_eq!(labels.len(), out_scores.len(), "room for other classes");
        assert_eq!(Some(boxes.len()), product(&[batch, room, 4]), "room for other boxes");
        assert_eq!(counts.len(), batch, "room for other numbers");
        let scratch = &mut scratch[..self.scratch_words()];
        let (anchors, _) = anchors.as_chunks::<4>();
        // Images may be many and each of them too little to be asked about.
        let by_image = count.saturating_mul(classes).saturating_add(room).saturating_add(1);
        let between = (WORK_BETWEEN / by_image).max(1);
        for (image, of_image) in counts.iter_mut().enumerate() {
            if image.is_multiple_of(between) && team.pace().is_over(WORK_BETWEEN) {
                return;
            }
            let part = image * room..(image + 1) * room;
            let mut found = Image {
                scores: &mut out_scores[part.clone()],
                boxes: &mut boxes[4 * part.start..4 * part.end],
                classes: &mut labels[part],
                count: 0,
            };
            let input = Input {
                scores: &scores[image * count * classes..][..count * classes],
                deltas: &deltas[image * count * numbers..][..count * numbers],
                anchors,
            };
            match self.rule {
                Rule::Regular { .. } => self.regular(team, &input, &mut found, scratch),
                Rule::Fast { classes_of_box } => {
                    self.fast(&mut team.pace(), &input, classes_of_box, &mut found, scratch);
                }
            }
            let Image { scores, boxes, classes, count } = found;
            scores[count..].fill(0.0);
            boxes[4 * count..].fill(0.0);
            classes[count..].fill(0);
            *of_image = i32::try_from(count).unwrap_or(i32::MAX);
        }
    }

    fn label(&self, class: usize) -> i32 {
        i32::try_from(class - 1).unwrap_or(i32::MAX).saturating_add(self.first_label)
    }

    fn edges(&self, input: &Input<'_>, index: usize) -> Edges {
        let numbers = self.sizes[3];
        edges(self.scales, input.anchors[index], &input.deltas[index * numbers..][..numbers])
    }

    /// Each box competes with the highest of its scores.
    fn fast(
        &self,
        pace: &mut Pace<'_>,
        input: &Input<'_>,
        classes_of_box: usize,
        found: &mut Image<'_>,
        scratch: &mut [u64],
    ) {
        let [_, _, classes, _] = self.sizes;
        let (of_thread, order) = scratch.split_at_mut(self.words_of_thread());
        let (candidates, mut kept) = self.split_scratch(of_thread);
        let mut competing = 0;
        if classes > 0 {
            let isa = Isa::of(self.set);
            for (index, scores) in input.scores.chunks_exact(classes).enumerate() {
                if pace.is_over(classes) {
                    return;
                }
                let best = isa.run(Highest(&scores[1..]));
                if best > self.score_threshold {
                    candidates[competing] = candidate(best, index);
                    competing += 1;
                }
            }
        }
        let count = suppress(
            &mut candidates[..competing],
            self.overlap_threshold,
            |index| self.edges(input, index),
            &mut kept,
            pace,
        );
        for (kept, edges) in kept.candidates[..count].iter().zip(&*kept.boxes) {
            // They are sorted.
            if pace.is_over(16 * classes) {
                return;
            }
            let index = parts(*kept).1;
            let scores = &input.scores[index * classes..][..classes];
            let order = &mut order[..classes - 1];
            // Higher scores first, NaN last, of equal ones lesser classes first.
            for (place, (score, class)) in order.iter_mut().zip(scores[1..].iter().zip(1_u64..)) {
                *place = u64::from(!rank(*score).unwrap_or(0)) << 32 | class;
            }
            order.sort_unstable();
            for place in order.iter().take(classes_of_box) {
                #[allow(clippy::cast_possible_truncation)] // The lower half.
                let class = *place as u32 as usize;
                found.push(scores[class], *edges, self.label(class));
            }
        }
    }

    /// Room for candidates, and for what is kept of them.
    fn split_scratch<'a>(&self, words: &'a mut [u64]) -> (&'a mut [u64], Kept<'a>) {
        let (candidates, rest) = words.split_at_mut(self.sizes[1]);
        let (kept, boxes) = rest.split_at_mut(self.most_kept());
        let boxes = bytemuck::cast_slice_mut(&mut boxes[..BOX_WORDS * kept.len()]);
        (candidates, Kept { candidates: kept, boxes })
    }

    /// The boxes of each class compete with each other, and then the kept ones of all classes.
    fn regular(
        &self,
        team: &mut Team,
        input: &Input<'_>,
        found: &mut Image<'_>,
        scratch: &mut [u64],
    ) {
        let [_, anchors, classes, _] = self.sizes;
        let most = self.most_kept();
        if classes == 0 || most == 0 {
            return;
        }
        let (boxes, rest) = scratch.split_at_mut(BOX_WORDS * anchors);
        let (slots, rest) = rest.split_at_mut(classes * most);
        let (order, of_threads) = rest.split_at_mut(classes * most);
        let boxes: &mut [Edges] = bytemuck::cast_slice_mut(boxes);
        let cut = Cut { each: 1, least: ANCHORS_OF_TASK, multiple: 1 };
        for_each_rows(team, (&mut *boxes, 1), cut, |part, boxes, _| {
            for (edges, index) in boxes.iter_mut().zip(part) {
                *edges = self.edges(input, index);
            }
        });
        let boxes = &*boxes;
        slots.fill(0);
        let tasks = self.threads.max(1);
        let (words, of_threads) = (self.words_of_thread(), DisjointOutput::new(of_threads));
        let kept_of_classes = DisjointOutput::new(&mut *slots);
        team.run_long(tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            // SAFETY: every task has its own room.
            let of_thread = unsafe { of_threads.slice(task * words, words) };
            let (candidates, mut kept) = self.split_scratch(of_thread);
            for class in (1..classes).skip(task).step_by(tasks) {
                let mut competing = 0;
                for (index, scores) in input.scores.chunks_exact(classes).enumerate() {
                    if pace.is_over(8) {
                        return;
                    }
                    if scores[class] > self.score_threshold {
                        candidates[competing] = candidate(scores[class], index);
                        competing += 1;
                    }
                }
                let count = suppress(
                    &mut candidates[..competing],
                    self.overlap_threshold,
                    |index| boxes[index],
                    &mut kept,
                    &mut pace,
                );
                // SAFETY: every class is one task's.
                let slots = unsafe { kept_of_classes.slice(class * most, count) };
                slots.copy_from_slice(&kept.candidates[..count]);
            }
        });
        // Of equal scores the lower class comes first, and what was kept sooner.
        let mut count = 0;
        let mut pace = team.pace();
        for (slot, kept) in slots.iter().enumerate() {
            if pace.is_over(4) {
                return;
            }
            if *kept != 0 {
                order[count] = candidate(parts(*kept).0, slot);
                count += 1;
            }
        }
        let mut heap = Heap::new(&mut order[..count], &mut pace);
        while found.count < self.limit && !pace.is_over(16) {
            let Some(best) = heap.pop() else { break };
            let (score, slot) = parts(best);
            found.push(score, boxes[parts(slots[slot]).1], self.label(slot / most));
        }
    }
}

impl PreparedKernel for DetectionPostprocessing {
    fn name(&self) -> String {
        "detection postprocessing f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [scores, boxes, classes, numbers], scratch) = operands.split();
        let output = Detections {
            scores: bytemuck::cast_slice_mut(scores),
            boxes: bytemuck::cast_slice_mut(boxes),
            classes: bytemuck::cast_slice_mut(classes),
            numbers: bytemuck::cast_slice_mut(numbers),
        };
        let given = [0, 1, 2].map(|index| inputs.of(index));
        self.run(team, given, output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch_words().saturating_mul(size_of::<u64>())
    }
}

/// What is given of one image.
struct Input<'a> {
    scores: &'a [f32],
    deltas: &'a [f32],
    anchors: &'a [[f32; 4]],
}

/// The greatest number; minus infinity if there is none but NaN.
struct Highest<'a>(&'a [f32]);

impl Kernel for Highest<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let mut greatest = simd.splat(f32::NEG_INFINITY);
        let mut chunks = self.0.chunks_exact(S::LANES);
        for chunk in chunks.by_ref() {
            // The second one stays if the first is NaN.
            greatest = simd.max(simd.load(chunk), greatest);
        }
        let rest = simd.load_partial(chunks.remainder(), f32::NEG_INFINITY);
        simd.greatest(simd.max(rest, greatest))
    }
}

#[cfg(test)]
mod tests {
    use super::super::boxes::overlap;
    use super::*;

    type Found = (Vec<f32>, Vec<f32>, Vec<i32>, Vec<i32>);

    /// Higher scores first; NaN comes last.
    fn descending(a: f32, b: f32) -> std::cmp::Ordering {
        b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    }

    /// As the operation is defined, one candidate after the other.
    fn expected(
        kernel: &DetectionPostprocessing,
        scores: &[f32],
        deltas: &[f32],
        anchors: &[f32],
    ) -> Found {
        let [batch, count, classes, numbers] = kernel.sizes;
        let mut found: Found = Default::default();
        for image in 0..batch {
            let score =
                |index: usize, class: usize| scores[(image * count + index) * classes + class];
            let edges = |index: usize| {
                let anchor = anchors[index * 4..][..4].try_into().unwrap();
                let deltas = &deltas[(image * count + index) * numbers..][..numbers];
                edges(kernel.scales, anchor, deltas)
            };
            let keep = |mut pending: Vec<(usize, usize)>, limit: usize| {
                pending.sort_by(|a, b| descending(score(a.0, a.1), score(b.0, b.1)));
                let mut kept: Vec<(usize, usize)> = Vec::new();
                for it in pending {
                    let is_free = |other: &(usize, usize)| {
                        overlap(edges(it.0), edges(other.0)) < kernel.overlap_threshold
                    };
                    if kept.len() < limit && kept.iter().all(is_free) {
                        kept.push(it);
                    }
                }
                kept
            };
            let is_in = |it: &(usize, usize)| score(it.0, it.1) > kernel.score_threshold;
            let mut detected: Vec<(usize, usize)> = Vec::new();
            match kernel.rule {
                Rule::Regular { class_limit } => {
                    for class in 1..classes {
                        let all = (0..count).map(|index| (index, class)).filter(is_in).collect();
                        detected.extend(keep(all, class_limit));
                    }
                    detected.sort_by(|a, b| descending(score(a.0, a.1), score(b.0, b.1)));
                    detected.truncate(kernel.limit);
                }
                Rule::Fast { classes_of_box } => {
                    let of_box = |index: usize| {
                        let mut all: Vec<_> = (1..classes).map(|class| (index, class)).collect();
                        all.sort_by(|a, b| descending(score(a.0, a.1), score(b.0, b.1)));
                        all
                    };
                    let best = (0..count).map(|index| of_box(index)[0]).filter(is_in).collect();
                    for kept in keep(best, kernel.limit) {
                        detected.extend(of_box(kept.0).into_iter().take(classes_of_box));
                    }
                }
            }
            let room = kernel.room();
            for (index, class) in &detected {
                let [x1, y1, x2, y2] = edges(*index);
                found.0.push(score(*index, *class));
                found.1.extend([y1, x1, y2, x2]);
                found.2.push(kernel.label(*class));
            }
            found.0.resize((image + 1) * room, 0.0);
            found.1.resize((image + 1) * room * 4, 0.0);
            found.2.resize((image + 1) * room, 0);
            found.3.push(i32::try_from(detected.len()).unwrap());
        }
        found
    }

    #[test]
    fn as_by_definition() {
        let mut random = fastrand::Rng::with_seed(11);
        for case in 0..200 {
            let rule = if case % 2 == 0 {
                Rule::Regular { class_limit: random.usize(1..9) }
            } else {
                Rule::Fast { classes_of_box: random.usize(1..5) }
            };
            let sizes =
                [random.usize(1..3), random.usize(0..40), random.usize(2..40), random.usize(4..6)];
            let sets: Vec<_> = InstructionSet::available().collect();
            let kernel = DetectionPostprocessing {
                set: sets[case % sets.len()],
                sizes,
                scales: [10.0, 10.0, 5.0, 5.0],
                rule,
                limit: random.usize(1..12),
                score_threshold: random.f32() * 0.5,
                overlap_threshold: random.f32(),
                first_label: random.i32(0..2),
                threads: 2,
            };
            let [batch, count, classes, numbers] = sizes;
            // Few different scores, of which many are equal; some are none.
            let mut score = || match random.u8(..) {
                0 => f32::NAN,
                it => f32::from(it % 16) / 16.0,
            };
            let scores: Vec<f32> = (0..batch * count * classes).map(|_| score()).collect();
            let mut reals = |count: usize, least: f32, most: f32| -> Vec<f32> {
                (0..count).map(|_| least + (most - least) * random.f32()).collect()
            };
            let deltas = reals(batch * count * numbers, -2.0, 2.0);
            let anchors = reals(count * 4, 0.2, 3.0);
            let room = batch * kernel.room();
            let (mut of_scores, mut boxes) = (vec![f32::NAN; room], vec![f32::NAN; room * 4]);
            let (mut labels, mut counts) = (vec![-7; room], vec![-7; batch]);
            kernel.run(
                &mut Team::new(1 + case % 2),
                [&scores, &deltas, &anchors],
                Detections {
                    scores: &mut of_scores,
                    boxes: &mut boxes,
                    classes: &mut labels,
                    numbers: &mut counts,
                },
                &mut vec![7; kernel.scratch_words()],
            );
            let expected = expected(&kernel, &scores, &deltas, &anchors);
            let bits = |it: &[f32]| it.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
            assert_eq!((bits(&of_scores), bits(&boxes)), (bits(&expected.0), bits(&expected.1)));
            assert_eq!((labels, counts), (expected.2, expected.3), "{kernel:?}");
        }
    }
}
